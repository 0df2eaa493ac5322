//! What the scans of skills come to together: see [`trust::trifecta`].

use super::finding::{Finding, FindingCode, listed};
use super::set::{self, Judged};
use super::{Composition, Error, Member, ToolPolicy};
use executor::Stop;

impl Composition {
    /// Judges members, with what their scans say of them together.
    pub(super) fn judge(
        &self,
        members: &[Member],
        asked: usize,
        policy: ToolPolicy,
        stop: &Stop,
    ) -> Result<Judged, Error> {
        let mut judged = set::judge(members, asked, policy, stop)?;
        let mut scans = Vec::with_capacity(members.len());
        for member in members {
            let head = self.registry.head(&member.id)?;
            scans.push(self.registry.scan_of(&head, member.version.number)?);
        }
        let powers = members.iter().zip(&scans).filter_map(|(member, scan)| {
            let scan = scan.as_ref()?;
            Some((&*member.name, &scan.report.capabilities))
        });
        let powers: Vec<_> = powers.collect();
        judged.trifecta = trust::trifecta(&powers).map(lethal);
        Ok(judged)
    }
}

/// A set that reads private data, takes in what strangers wrote, and hands something out.
fn lethal(trifecta: trust::Trifecta) -> Finding {
    let trust::Trifecta {
        private_data,
        untrusted_content,
        way_out,
    } = trifecta;
    let message = format!(
        "together they read private data ({}), read untrusted text ({}) and send data out ({})",
        listed(&private_data),
        listed(&untrusted_content),
        listed(&way_out)
    );
    let mut skills = private_data;
    for name in untrusted_content.into_iter().chain(way_out) {
        if !skills.contains(&name) {
            skills.push(name);
        }
    }
    Finding::new(FindingCode::LethalTrifecta, message).about(skills)
}
