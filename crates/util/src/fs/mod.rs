pub mod accounts;
pub mod atomic_write;
pub mod dir_permissions;
pub mod free_space;
pub mod numbered_backup;
pub mod ownership;
pub mod private_dir;
pub mod writable;
