import Larder

/// The records of the files below a folder, in a store, with their relative paths as keys.
struct Catalog<Store: DataStore<FileRecord>> {
  /// The number of changes in a batch.
  ///
  /// Large enough to spread the cost of a commit, small enough that memory does not grow with the tree.
  static var batchSize: Int { 1000 }

  let store: Store

  /// Updates the catalog to the current state of the folder.
  ///
  /// Only differences are written.
  ///
  /// Each batch is durable before the next one begins, so a run that is interrupted leaves the rest to the next.
  ///
  /// - Parameters:
  ///   - walk: The walk through the folder, from its beginning.
  ///   - progress: A closure that is called repeatedly with the number of entries that the walk has reached. An error
  ///     that it throws ends the update.
  func update(from walk: FolderWalk, progress: (Int) throws -> Void) async throws -> CatalogChanges {
    var changes = CatalogChanges()
    var batch = ChangeBatch<FileRecord>()
    // A batch only changes keys that both sides have passed, so the walk over the store does not meet its changes.
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

  /// Reads the whole catalog, page by page, and adds up its figures.
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
