//! The user at the other end of a TCP connection within this machine.
//!
//! Linux has it with the socket of the other end, and gives it by `sock_diag(7)`: one question
//! about one socket, however many there are.

use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};

/// Returns the user of the process that made a connection within this machine, from `peer` to
/// `here`; `None` where the system does not give it.
#[must_use]
pub fn peer_user(peer: SocketAddr, here: SocketAddr) -> Option<u32> {
    #[cfg(target_os = "linux")]
    return linux::peer_user(peer, here);
    #[cfg(not(target_os = "linux"))]
    {
        let _ = (peer, here);
        None
    }
}

/// Returns whether the system gives the users of connections: a sandbox may have no `sock_diag`.
#[must_use]
pub fn gives_peer_users() -> bool {
    let connect = || {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let here = listener.local_addr()?;
        let client = TcpStream::connect(here)?;
        let user = peer_user(client.local_addr()?, here);
        std::io::Result::Ok(user == Some(own_user()))
    };
    // What could not be tried, as when no port is left, is taken to be there: then a user who is
    // not known may do nothing.
    connect().unwrap_or(true)
}

/// Returns the user of this process.
#[must_use]
pub fn own_user() -> u32 {
    rustix::process::geteuid().as_raw()
}

#[cfg(target_os = "linux")]
mod linux {
    use std::io;
    use std::net::{IpAddr, SocketAddr};

    use rustix::net::{
        AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, netlink, recv, send,
        socket_with,
    };

    /// `SOCK_DIAG_BY_FAMILY` of `linux/sock_diag.h`, the type of a question and of its answer.
    const BY_FAMILY_CODE: u16 = 20;
    /// `NLM_F_REQUEST` of `linux/netlink.h`.
    const REQUEST_MASK: u16 = 1;
    /// `TCP_ESTABLISHED` of `net/tcp_states.h`.
    const ESTABLISHED_STATE: u8 = 1;
    const TCP_CODE: u8 = 6;
    /// A header, and `struct inet_diag_req_v2`.
    const QUESTION_BYTES: usize = 72;

    pub(super) fn peer_user(peer: SocketAddr, here: SocketAddr) -> Option<u32> {
        let first = ask(peer, here).ok().flatten()?;
        // A socket that its process has closed belongs to root. It may be closed between the two
        // fields of an answer, so the user is believed if the socket is still open afterwards.
        ask(peer, here).ok().flatten().and(Some(first))
    }

    /// Returns the user of an open socket; `None` where it is closed.
    fn ask(peer: SocketAddr, here: SocketAddr) -> io::Result<Option<u32>> {
        let socket = socket_with(
            AddressFamily::NETLINK,
            SocketType::DGRAM,
            SocketFlags::CLOEXEC,
            Some(netlink::SOCK_DIAG),
        )?;
        send(&socket, &question(peer, here), SendFlags::empty())?;
        let mut answer = [0; 1024];
        // The kernel answers before `send` returns.
        let (_, length) = recv(&socket, &mut answer, RecvFlags::DONTWAIT)?;
        let answer = answer.get(..length).unwrap_or_default();
        Ok(user(answer))
    }

    /// The socket of the other end, whose own address is the one that we see as the peer's.
    fn question(peer: SocketAddr, here: SocketAddr) -> Vec<u8> {
        let family = match peer.ip().to_canonical() {
            IpAddr::V4(_) => AddressFamily::INET,
            IpAddr::V6(_) => AddressFamily::INET6,
        };
        let mut bytes = Vec::with_capacity(QUESTION_BYTES);
        // `struct nlmsghdr`: length, type, flags, number, and the port of the sender.
        bytes.extend(
            u32::try_from(QUESTION_BYTES)
                .unwrap_or_default()
                .to_ne_bytes(),
        );
        bytes.extend(BY_FAMILY_CODE.to_ne_bytes());
        bytes.extend(REQUEST_MASK.to_ne_bytes());
        bytes.extend([0; 8]);
        // Family, protocol, no extensions, and all states.
        let family = u8::try_from(family.as_raw()).unwrap_or_default();
        bytes.extend([family, TCP_CODE, 0, 0]);
        bytes.extend(u32::MAX.to_ne_bytes());
        // `struct inet_diag_sockid`: ports and addresses as they are on the wire, any interface,
        // and no cookie.
        bytes.extend(peer.port().to_be_bytes());
        bytes.extend(here.port().to_be_bytes());
        for address in [peer, here] {
            let mut octets = [0; 16];
            match address.ip().to_canonical() {
                IpAddr::V4(ip) => octets[..4].copy_from_slice(&ip.octets()),
                IpAddr::V6(ip) => octets = ip.octets(),
            }
            bytes.extend(octets);
        }
        bytes.extend([0; 4]);
        bytes.extend([u8::MAX; 8]);
        bytes
    }

    /// Reads `struct inet_diag_msg` after its header: the state is its second byte, the user
    /// comes after the socket's id and three counts.
    fn user(answer: &[u8]) -> Option<u32> {
        let kind = answer.get(4..6)?;
        let state = *answer.get(17)?;
        let user = answer.get(80..84)?.try_into().ok()?;
        let is_open = kind == BY_FAMILY_CODE.to_ne_bytes() && state == ESTABLISHED_STATE;
        is_open.then_some(u32::from_ne_bytes(user))
    }
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use super::*;

    fn connected(address: &str) -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind(address).expect("a port");
        let client = TcpStream::connect(listener.local_addr().expect("an address"));
        let (server, _) = listener.accept().expect("a connection");
        (client.expect("a connection"), server)
    }

    fn user_of(server: &TcpStream) -> Option<u32> {
        let (peer, here) = (server.peer_addr(), server.local_addr());
        peer_user(peer.expect("an address"), here.expect("an address"))
    }

    #[test]
    fn an_open_connection_has_the_user_of_its_client_and_a_closed_one_has_none() {
        let own = own_user();
        for address in ["127.0.0.1:0", "[::1]:0"] {
            let (client, server) = connected(address);
            assert_eq!(user_of(&server), Some(own), "{address}");
            drop(client);
            assert_eq!(user_of(&server), None, "{address}, closed");
        }
    }

    #[test]
    fn a_client_of_ipv4_is_found_behind_a_listener_for_both_families() {
        let own = own_user();
        let listener = TcpListener::bind("[::]:0").expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let client = TcpStream::connect(("127.0.0.1", port)).expect("a connection");
        let (server, _) = listener.accept().expect("a connection");
        assert_eq!(user_of(&server), Some(own));
        drop(client);
    }

    #[test]
    fn this_system_gives_the_users_of_connections() {
        assert!(gives_peer_users());
    }

    #[test]
    fn what_is_no_connection_has_no_user() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let here = listener.local_addr().expect("an address");
        assert_eq!(peer_user(here, here), None);
        assert_eq!(
            peer_user("127.0.0.1:1".parse().expect("an address"), here),
            None
        );
    }
}
