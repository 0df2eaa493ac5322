//! A port for a program that is told where to listen.

use std::net::{Ipv4Addr, SocketAddr};

use socket2::{Domain, Socket, Type};

/// A port of 127.0.0.1. A socket stays bound to it, which never listens: the system
/// gives the port to nobody else, and refuses connections until the program listens.
///
/// The program must bind with `SO_REUSEADDR`, as servers do.
#[derive(Debug)]
pub struct Port {
    holder: Socket,
}

impl Port {
    /// Takes a port that is free.
    #[must_use]
    pub fn hold() -> Self {
        let holder = Socket::new(Domain::IPV4, Type::STREAM, None).expect("a socket");
        holder.set_reuse_address(true).expect("an option");
        let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        holder.bind(&any.into()).expect("a free port");
        Self { holder }
    }

    /// Where the program is to listen.
    #[must_use]
    pub fn number(&self) -> u16 {
        let address = self.holder.local_addr().expect("an address");
        address.as_socket().expect("an address of IP").port()
    }
}
