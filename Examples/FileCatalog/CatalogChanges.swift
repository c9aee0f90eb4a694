/// The numbers of entries in an update of the catalog, by kind of change.
struct CatalogChanges: Hashable, Sendable {
  var added = 0
  var changed = 0
  var removed = 0
  var unchanged = 0

  /// Entries that were kept although the walk did not see them, because their folder could not be read.
  var kept = 0
}
