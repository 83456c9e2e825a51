pub mod egress_policy;
pub(crate) mod guarded_connector;
