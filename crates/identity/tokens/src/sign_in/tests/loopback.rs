//! Who may call over loopback where nobody signs in.

use super::*;

#[cfg(target_os = "linux")]
#[tokio::test]
async fn without_sign_in_other_users_than_the_owner_and_root_may_do_nothing() {
    let may_read = async |config: &str, user: Option<u32>| {
        let (sign_in, _) = sign_in(config).await;
        let access = recognize(&sign_in.of_user(user, 1000), &HeaderMap::new(), false);
        access.expect("anonymous").require(Action::Read).is_ok()
    };
    for (config, user, expected) in [
        ("{}", Some(1000), true),
        ("{}", Some(0), true),
        ("{}", Some(1001), false),
        ("{}", None, false),
        ("{loopback: anyone}", Some(1001), true),
        ("{loopback: anyone}", None, true),
        // With sign-in, the anonymous have what the operator gives them.
        ("{sign_in: tokens, anonymous: [read]}", Some(1001), true),
    ] {
        assert_eq!(may_read(config, user).await, expected, "{config} {user:?}");
    }
}
