//! Facet index of a segment: evaluates filters.

use crate::bitmap::Bitmap;
use crate::query::Filter;
use crate::update::Facet;
use foldhash::{HashMap, HashMapExt};

/// The filterable attributes of a document.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct DocumentAttributes {
    pub(crate) added: i64,
    pub(crate) facets: std::sync::Arc<[Facet]>,
}

/// The documents of a segment by facet and by date.
#[derive(Debug, Default)]
pub(crate) struct FacetIndex {
    /// Sorted document numbers by key and value.
    values: HashMap<String, HashMap<String, Vec<u32>>>,
    /// Documents sorted by date.
    dates: Vec<(i64, u32)>,
}

// === impl Facets ===

impl FacetIndex {
    pub(crate) fn new(details: &[DocumentAttributes]) -> FacetIndex {
        let mut facets = FacetIndex { values: HashMap::new(), dates: Vec::with_capacity(details.len()) };
        for (document, detail) in details.iter().enumerate() {
            facets.dates.push((detail.added, document as u32));
            for facet in detail.facets.iter() {
                let values = match facets.values.get_mut(&facet.key) {
                    Some(values) => values,
                    None => facets.values.entry(facet.key.clone()).or_default(),
                };
                match values.get_mut(&facet.value) {
                    Some(documents) => documents.push(document as u32),
                    None => {
                        values.insert(facet.value.clone(), vec![document as u32]);
                    }
                }
            }
        }
        facets.dates.sort_unstable();
        facets
    }

    /// The documents that match a filter.
    pub(crate) fn allowed(&self, filter: &Filter) -> Bitmap {
        let mut allowed: Option<Bitmap> = None;
        let mut meet = |documents: &mut dyn Iterator<Item = u32>| {
            let mut met = Bitmap::empty(self.dates.len());
            documents.for_each(|document| met.insert(document as usize));
            match &mut allowed {
                None => allowed = Some(met),
                Some(allowed) => allowed.intersect(&met),
            }
        };
        for (key, values) in &filter.all {
            let known = self.values.get(key);
            meet(&mut values.iter().filter_map(|value| known?.get(value)).flatten().copied());
        }
        if filter.added_from.is_some() || filter.added_to.is_some() {
            let from = filter.added_from.map_or(0, |from| self.dates.partition_point(|(added, _)| *added < from));
            let to =
                filter.added_to.map_or(self.dates.len(), |to| self.dates.partition_point(|(added, _)| *added <= to));
            meet(&mut self.dates.get(from..to).unwrap_or_default().iter().map(|(_, document)| *document));
        }
        allowed.unwrap_or_else(|| Bitmap::full(self.dates.len()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_wants_one_value_of_each_key_and_the_dates() {
        let detail = |added, facets: &[(&str, &str)]| DocumentAttributes {
            added,
            facets: facets.iter().map(|(key, value)| Facet { key: (*key).into(), value: (*value).into() }).collect(),
        };
        let facets = FacetIndex::new(&[
            detail(30, &[("kind", "pdf"), ("tag", "a"), ("tag", "b")]),
            detail(10, &[("kind", "pdf"), ("tag", "c")]),
            detail(20, &[("kind", "html"), ("tag", "a")]),
            detail(20, &[]),
        ]);
        let filter = |all: &[(&str, &[&str])], added_from, added_to| Filter {
            all: all
                .iter()
                .map(|(key, any)| ((*key).into(), any.iter().map(|value| (*value).into()).collect()))
                .collect(),
            added_from,
            added_to,
        };
        for (filter, documents) in [
            (filter(&[], None, None), vec![0, 1, 2, 3]),
            (filter(&[("kind", &["pdf"])], None, None), vec![0, 1]),
            (filter(&[("kind", &["pdf", "html"]), ("tag", &["a"])], None, None), vec![0, 2]),
            (filter(&[("kind", &["pdf"])], Some(11), None), vec![0]),
            (filter(&[], Some(20), Some(20)), vec![2, 3]),
            (filter(&[], None, Some(9)), vec![]),
            (filter(&[], Some(21), Some(9)), vec![]),
            (filter(&[("kind", &[])], None, None), vec![]),
            (filter(&[("none", &["pdf"])], None, None), vec![]),
        ] {
            assert_eq!(facets.allowed(&filter).iter().collect::<Vec<_>>(), documents, "{filter:?}");
        }
    }
}
