/// What bringing the catalogue up to date came to, in numbers of entries.
struct CatalogChanges: Hashable, Sendable {
  var added = 0
  var changed = 0
  var removed = 0
  var unchanged = 0

  /// Entries that were kept though the walk did not see them: it could not read the folder that they are in.
  var kept = 0
}
