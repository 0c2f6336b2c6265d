//! The groups of a listed directory are those that a look at each finds.

use fake::Fake;
use kernel::{GroupName, Host, Kernel, Listing};

#[test]
fn a_listing_has_the_groups_that_there_are() {
    let fake = Fake::v1(2, 1);
    let hierarchies = fake.hierarchies().unwrap();
    fake.mkdir(&hierarchies[0], "many").unwrap();
    for number in (0..40).step_by(2) {
        fake.mkdir(&hierarchies[0], &format!("many/g{number}")).unwrap();
    }
    let host = Host::new(Box::new(fake)).unwrap();
    let listing = Listing::new(&host);
    for number in 0..40 {
        for path in [format!("many/g{number}"), format!("many/g{number}/in"), format!("none/g{number}")] {
            let group = GroupName::new(&path).unwrap();
            assert_eq!(listing.seats(&group), host.seats(&group), "{path}");
        }
    }
    assert!(listing.holds(&hierarchies[0], ""));
}
