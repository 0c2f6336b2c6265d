//! The rules: which processes go to which group.

use std::sync::LazyLock;

use serde_json::{Value as Json, json};
use toml::de::DeValue;

use super::matching::MatchTable;
use crate::diagnostic::Diagnostic;
use crate::pattern::NamePattern;
use crate::reader::{
    Key, Keyed as _, Pairs, Reader, Said, Takes, Value, array, keyed, object, one_or_more, table, text,
};
use crate::rule::{Controllers, Rule, Target};

keyed! {
    /// Where a rule leads, beside what processes must be like.
    #[derive(Default)]
    pub(crate) struct RuleTable in "in a rule" {
        /// The group that such processes are put into, with the codes of templates; or one for some controllers each.
        #[takes(r#""db/%u" · [{ group = "fast", controllers = ["cpu"] }, { group = "big", controllers = ["memory"] }]"#)]
        to: Option<Said<Vec<ToTable>>>,
        /// For these controllers only [default: all].
        #[takes(r#"["cpu", "memory"]"#)]
        controllers: Option<Controllers>,
        /// Leave such processes where they are, and look at no further rule.
        #[takes("true")]
        ignore: bool,
        /// Leave them where they are while they are scheduled in real time.
        #[takes("true")]
        ignore_rt: bool,
    }
}

/// All keys of a rule.
pub(crate) static RULE: LazyLock<Vec<Key>> = LazyLock::new(|| [MatchTable::KEYS, RuleTable::KEYS].concat());

keyed! {
    /// One of the groups that a rule leads to.
    #[derive(Default)]
    pub(crate) struct ToTable in "in 'to'" {
        /// The group, with the codes of templates.
        #[takes(r#""fast""#)]
        group: Option<Said<NamePattern>>,
        /// For these controllers [default: all].
        #[takes(r#"["cpu"]"#)]
        controllers: Option<Controllers>,
    }
}

impl From<&Target> for ToTable {
    fn from(target: &Target) -> ToTable {
        ToTable { group: Some(Said::of(target.group.clone())), controllers: Some(target.controllers.clone()) }
    }
}

/// A rule as TOML.
pub(crate) fn rule_pairs(rule: &Rule) -> Pairs {
    let Rule { targets, ignore, ignore_rt, .. } = rule;
    let (mut to, mut controllers) = (targets.iter().map(ToTable::from).collect::<Vec<_>>(), None);
    if let [one] = to.as_mut_slice() {
        controllers = one.controllers.take();
    }
    let to = (!to.is_empty()).then(|| Said::of(to));
    let own = RuleTable { to, controllers, ignore: *ignore, ignore_rt: *ignore_rt };
    [MatchTable::from(&rule.matcher).pairs(), own.pairs()].concat()
}

impl Takes for Rule {
    fn schema() -> Json {
        object(&RULE)
    }

    fn read(reader: &mut Reader<'_>, value: &Value<'_>) -> Option<Rule> {
        reader.rule(value)
    }

    fn write(&self) -> Option<String> {
        Some(table(&rule_pairs(self)))
    }
}

impl Takes for Vec<ToTable> {
    fn schema() -> Json {
        let table = ToTable::schema();
        json!({ "anyOf": [String::schema(), table, { "type": "array", "items": table }] })
    }

    fn read(reader: &mut Reader<'_>, value: &Value<'_>) -> Option<Vec<ToTable>> {
        if matches!(value.get_ref(), DeValue::String(_)) {
            return Some(vec![ToTable { group: Takes::read(reader, value), controllers: None }]);
        }
        let tables = reader.tables(value, ToTable::KEYS).into_iter().filter_map(|value| {
            let table = ToTable::read(reader, value)?;
            if table.group.is_none() {
                return reader.refuse(value, "no group is given".to_owned(), "such as { group = \"fast\" }");
            }
            Some(table)
        });
        Some(tables.collect())
    }

    fn write(&self) -> Option<String> {
        match self.as_slice() {
            [one] => one.group.write(),
            several => Some(array(&several.iter().filter_map(Takes::write).collect::<Vec<_>>())),
        }
    }
}

impl Takes for NamePattern {
    fn read(reader: &mut Reader<'_>, value: &Value<'_>) -> Option<NamePattern> {
        let text = reader.text(value, "the name of a group")?;
        reader.pattern(text, reader.places.origin(value.span()))
    }

    fn write(&self) -> Option<String> {
        Some(text(&self.to_string()))
    }
}

impl Takes for Controllers {
    fn schema() -> Json {
        one_or_more(String::schema())
    }

    fn read(reader: &mut Reader<'_>, value: &Value<'_>) -> Option<Controllers> {
        if matches!(value.get_ref(), DeValue::String(text) if text == "*") {
            return Some(Controllers::All);
        }
        if matches!(value.get_ref(), DeValue::Array(array) if array.is_empty()) {
            let message = "the list of controllers is empty".to_owned();
            return reader.refuse(value, message, "leave it out for all controllers");
        }
        let these: Vec<_> = reader.controllers(value).into_iter().map(|subsystem| subsystem.value).collect();
        (!these.is_empty()).then_some(Controllers::These(these))
    }

    fn write(&self) -> Option<String> {
        let Controllers::These(these) = self else { return None };
        Some(array(&these.iter().map(|name| text(&name.to_string())).collect::<Vec<_>>()))
    }
}

impl Reader<'_> {
    fn rule(&mut self, value: &Value<'_>) -> Option<Rule> {
        if self.report.is_hopeless() {
            return None;
        }
        let before = self.report.errors();
        let entries = self.table(value, RuleTable::PLACE, &RULE)?;
        let matching: MatchTable = self.entries(&entries);
        let strict = matching.strict.clone();
        let matcher = self.matcher_of(value, matching, before);
        let RuleTable { to, controllers, ignore, ignore_rt } = self.entries(&entries);
        if to.is_none() && !ignore {
            let hint = "add to = \"a/group\", or ignore = true";
            return self.refuse(value, "the group that such processes go to is missing".to_owned(), hint);
        }
        let place = to.as_ref().map(|to| to.at.clone());
        let targets = to.and_then(|to| to.value).unwrap_or_default().into_iter().filter_map(|to| {
            let controllers = to.controllers.or(controllers.clone()).unwrap_or(Controllers::All);
            let Said { at: origin, value, .. } = to.group?;
            Some(Target { controllers, group: value?, within: None, origin })
        });
        let targets: Vec<Target> = targets.collect();
        if let (Some(strict), Some(place)) = (strict, place)
            && matcher.as_ref().is_some_and(|matcher| matcher.strict)
            && targets.iter().any(|target| target.group.name().is_none())
        {
            let error = Diagnostic::error("a strict rule needs a group that exists").at(place);
            let hint = "name a group without codes; making one would keep the start waiting";
            self.error(error.also(strict.origin, "strict here").hint(hint));
            return None;
        }
        let is_whole = self.report.errors() == before;
        is_whole.then_some(Rule { matcher: matcher?, targets, ignore, ignore_rt })
    }
}
