import Larder

extension CaseList {
  /// Cases that alter the files of a store while it is closed.
  mutating func addAlteredFileCases() {
    for (variant, alteration) in zip(["", "a", "b", "c"], FileAlteration.allCases) {
      add(
        250, variant, "a store with \(alteration) is not taken for an empty one, and a refusal changes nothing",
        in: .damage, checks: .badInput, needs: .persistence
      ) { trial in
        let store = try await trial.reopen(trial.open(withKeys: (0..<40).map { StoreKey(integer: $0) }))
        try await expect("the count of entries before the file is altered", store.count(), equals: 40)
        try await store.close()
        for name in try trial.location.dataFileNames() {
          try await expectNotEmpty(trial, alteration, of: name)
        }
      }
    }
  }
}

/// Throws a ``Mismatch`` if a store is opened as an empty one after one of its files was altered, or if refusing to open it
/// changes that file.
private func expectNotEmpty<Store: DataStore>(
  _ trial: Trial<Store>, _ alteration: FileAlteration, of name: String
) async throws where Store.Value == SampleValue? {
  let altered = try trial.anotherLocation()
  guard try altered.takeFiles(of: trial.location) > 0, try altered.alter(name, alteration) else { return }
  let content = try altered.content(of: name)
  let store: Store
  do {
    store = try await trial.open(at: altered)
  } catch is StoreError {
    return try expect(
      "whether \(name), which could not be opened, stayed as it was", altered.content(of: name) == content, equals: true
    )
  }
  // The folder in place of a file may have become the store's: these are other data then.
  if alteration == .unreadable, try !altered.isEmptyFolder(name) { return }
  let isTakenForEmpty: Bool
  do {
    let (count, entries) = (try await store.count(), try await store.entries(in: .all, limit: .max))
    let findings = try await store.information.maintenance?.verify().findings ?? []
    isTakenForEmpty = count == 0 && entries.isEmpty && findings.isEmpty
  } catch is StoreError {
    // What was lost is reported as damage, or the store has nothing to verify.
    isTakenForEmpty = false
  }
  do {
    try await store.close()
  } catch is StoreError {
    // It may say once more that it is damaged.
  }
  try expect(
    "whether a store of 40 entries with \(alteration), \(name), is opened as an empty one", isTakenForEmpty,
    equals: false)
}
