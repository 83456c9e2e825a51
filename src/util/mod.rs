pub(crate) mod concurrency_limit;
pub(crate) mod did_you_mean;
pub(crate) mod file_watch;
pub mod fs;
pub(crate) mod lazy_gauge;
pub(crate) mod lock;
pub mod sanitize;
pub(crate) mod shell_quote;
