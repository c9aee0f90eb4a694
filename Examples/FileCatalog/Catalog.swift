import Larder

/// The records of the files below one folder, in a store, under their paths relative to that folder.
struct Catalog<Store: DataStore<FileRecord>> {
  /// How many changes go to the store at once.
  ///
  /// Large enough that the cost of a commit is spread, small enough that memory does not grow with the tree.
  static var batchSize: Int { 1000 }

  let store: Store

  /// Brings the catalogue up to date with what is in the folder now, writing only what differs.
  ///
  /// Each batch is kept for good when the next one begins, so that a run which is cut short leaves the rest to the next.
  ///
  /// - Parameters:
  ///   - walk: The walk through the folder, from its beginning.
  ///   - progress: Gets the number of entries that the walk has come to, again and again; what it throws ends the update.
  func update(from walk: FolderWalk, progress: (Int) throws -> Void) async throws -> CatalogChanges {
    var changes = CatalogChanges()
    var batch = ChangeBatch<FileRecord>()
    // A batch changes only keys that both sides have been read beyond, so the walk over the store does not meet it.
    for try await difference in SortedDifference(from: store.entries(), to: walk) {
      switch difference {
      case .added(let entry):
        changes.added += 1
        batch.setValue(entry.value, forKey: entry.key)
      case .changed(let entry):
        changes.changed += 1
        batch.setValue(entry.value, forKey: entry.key)
      case .unchanged:
        changes.unchanged += 1
      case .removed(let key) where walk.problems.mayHide(key):
        changes.kept += 1
      case .removed(let key):
        changes.removed += 1
        batch.removeValue(forKey: key)
      }
      if batch.count == Self.batchSize {
        try await store.apply(batch)
        batch = ChangeBatch()
      }
      try progress(changes.added + changes.changed + changes.unchanged)
    }
    if !batch.isEmpty {
      try await store.apply(batch)
    }
    return changes
  }

  /// Reads the whole catalogue, page by page, and adds it up.
  func overview() async throws -> CatalogOverview {
    var overview = CatalogOverview()
    for try await page in store.pages(size: 500) {
      for entry in page.entries {
        overview.add(entry)
      }
    }
    return overview
  }
}
