//! Git repositories, without a checkout.
