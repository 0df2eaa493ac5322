//! Enums whose variants have the same names in the domain and in the contract.

/// Defines a function that converts an enum of the domain to that of the contract, and, where
/// a second name is given, one that converts it back; `Unspecified` is no value then.
///
/// ```ignore
/// same_variants!(fn location / location_of(model::Location) -> Location { Project, User });
/// ```
macro_rules! same_variants {
    ($vis:vis fn $write:ident($domain:ty) -> $wire:ident { $($variant:ident),+ $(,)? }) => {
        $vis fn $write(value: $domain) -> v1::$wire {
            // No wildcard: a variant that the domain gains must not reach callers as another.
            match value {
                $(<$domain>::$variant => v1::$wire::$variant,)+
            }
        }
    };
    ($vis:vis fn $write:ident / $read:ident($domain:ty) -> $wire:ident { $($variant:ident),+ $(,)? }) => {
        same_variants!($vis fn $write($domain) -> $wire { $($variant),+ });

        $vis fn $read(value: v1::$wire) -> Option<$domain> {
            match value {
                v1::$wire::Unspecified => None,
                $(v1::$wire::$variant => Some(<$domain>::$variant),)+
            }
        }
    };
}

pub(super) use same_variants;
