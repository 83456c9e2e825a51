pub(crate) mod accounts;
pub(crate) mod atomic_write;
pub(crate) mod dir_permissions;
pub(crate) mod free_space;
pub(crate) mod numbered_backup;
pub(crate) mod ownership;
pub(crate) mod private_dir;
pub(crate) mod writable;
