//! Reads and writes of groups' files, every refusal explained.

use rustix::io::Errno;

use crate::{Error, GroupName, Host, Op, Refusal, Seat, explain::explain, reclaim::write_reclaiming};

impl Host {
    /// The whole content of a group's file.
    ///
    /// # Errors
    /// [`Error::Refused`] with the cause.
    pub fn read(&self, seat: &Seat<'_>, group: &GroupName, file: &str) -> Result<String, Error> {
        self.kernel()
            .read(seat.at, &seat.path, file)
            .map_err(|errno| self.refused(Op::Read, seat, group, Some(file), None, errno))
    }

    /// A write to a group's file ([`write_reclaiming`]).
    ///
    /// # Errors
    /// [`Error::Refused`] with the cause.
    pub fn write(&self, seat: &Seat<'_>, group: &GroupName, file: &str, text: &str) -> Result<(), Error> {
        write_reclaiming(self.kernel(), seat.at, &seat.path, file, text)
            .map_err(|errno| self.refused(Op::Write, seat, group, Some(file), Some(text), errno))
    }

    /// Turns an errno into an explained refusal.
    pub fn refused(
        &self,
        op: Op,
        seat: &Seat<'_>,
        group: &GroupName,
        file: Option<&str>,
        value: Option<&str>,
        errno: Errno,
    ) -> Error {
        let directory = seat.directory();
        let mut refusal = Refusal {
            op,
            group: group.to_string(),
            path: file.map_or_else(|| directory.clone(), |file| directory.join(file)),
            file: file.map(str::to_owned),
            value: value.map(str::to_owned),
            errno,
            cause: None,
            hint: None,
        };
        explain(self, seat, group, &mut refusal);
        Error::Refused(Box::new(refusal))
    }
}
