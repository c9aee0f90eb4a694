import Foundation
import Larder
import LarderFiles

extension CaseList {
  mutating func addDamageCases() {
    begin(.damage, checking: .isolation)
    addDamage("51a", "reading the damaged entry throws an error with its key") { store, _ in
      let error = try await expectDamage(in: "the value") { try await store.value(forKey: "damaged") }
      try expect("whether the error has an underlying error", error.underlying != nil, equals: true)
    }
    addDamage("51b", "reading several keys throws an error with the first damaged key") { store, _ in
      try await store.setValue(.undecodable(), forKey: "a:damaged too")
      try await expectDamage(in: "the values") {
        try await store.values(forKeys: ["a", "damaged", "z", "a:damaged too"])
      }
      try await expect(
        "the values of the other entries", store.values(forKeys: ["a", "z"]),
        equals: [SampleValue(key: "a"), SampleValue(key: "z")])
    }
    addDamage("51c", "a scan over the damaged entry throws an error with its key") { store, _ in
      for order in ScanOrder.allCases {
        try await expectDamage(in: "entries, \(order)") {
          try await store.entries(in: .all, limit: .max, order: order)
        }
        try await expectDamage(in: "sequence of entries, \(order)") {
          for try await _ in store.entries(order: order) {}
        }
        try await expectDamage(in: "a page, \(order)") { try await store.pages(size: 5, order: order).page() }
      }
    }
    addDamage("51d", "keys and counts are not affected by the damage", needs: .keysWithoutValues) { store, trial in
      try await expectAllKeys(of: store, in: trial)
      try await expectWithoutDecoding("whether it contains the damaged entry", equals: true) {
        try await store.contains("damaged")
      }
      try await expectWithoutDecoding("the count", equals: 3) { try await store.count() }
    }
    addDamage("229", "every other entry stays readable and writable") { store, trial in
      try await expect("the value before the damaged entry", store.value(forKey: "a"), equals: SampleValue(key: "a"))
      try await expect(
        "the entries before the damaged one", store.entries(in: ..<"damaged", limit: .max),
        equals: [StoreEntry(key: "a", value: .some(SampleValue(key: "a")))])
      try await expect(
        "the entries after the damaged one", store.entries(in: .all, limit: 1, order: .descending),
        equals: [StoreEntry(key: "z", value: .some(SampleValue(key: "z")))])
      try await store.apply([.set("a", "new"), .remove("z"), .set("b", nil)])
      try await store.update("b") { $0 = "b" }
      let settled = try await trial.settled(store)
      try await expect("the values", settled.values(forKeys: ["a", "b", "z"]), equals: ["new", "b", nil])
      try await expectDamage(in: "the value") { try await settled.value(forKey: "damaged") }
    }
    addDamage("230", "the damaged entry is never deleted because of the damage") { store, trial in
      var store = store
      for _ in 0..<2 {
        try await expectDamage(in: "the value") { try await store.value(forKey: "damaged") }
        try await expectDamage(in: "a scan of all entries") { try await store.entries(in: .all, limit: .max) }
        try await expectAllKeys(of: store, in: trial)
        store = try await trial.settled(store)
      }
    }
    addDamage("231", "an update of the damaged entry throws and changes nothing") { store, trial in
      let runs = Tally()
      try await expectDamage(in: "the update") {
        try await store.update(["a", "damaged"]) { slots in
          runs.add()
          slots.assign([nil, nil])
        }
      }
      try expect("the number of runs of the body", runs.count, equals: 0)
      try await expectAllKeys(of: store, in: trial)
      try await expect("the other value", store.value(forKey: "a"), equals: SampleValue(key: "a"))
    }
    addDamage("232a", "the damaged entry can be overwritten") { store, trial in
      try await store.setValue("repaired", forKey: "damaged")
      try await expect("the value of the damaged entry", store.value(forKey: "damaged"), equals: "repaired")
      try await expect(
        trial.settled(store), holds: Entries(keys: ["a", "z"]).merging(["damaged": "repaired"]) { $1 })
    }
    addDamage("232b", "the damaged entry can be removed, by its key or with a range") { store, trial in
      try await store.removeValue(forKey: "damaged")
      try await expect("the value of the damaged entry", store.value(forKey: "damaged"), equals: nil)
      try await store.setValue(.undecodable(), forKey: "damaged")
      try await store.removeAll(in: .prefix("d"))
      try await expect(trial.settled(store), holds: Entries(keys: ["a", "z"]))
    }
  }

  /// Adds a case that begins with a store of three entries, of which the middle one cannot be decoded.
  private mutating func addDamage(
    _ id: String, _ name: String, needs: StoreCapabilities = [],
    _ body: @escaping @Sendable (Store, Trial<Store>) async throws -> Void
  ) {
    add(id, name, keys: ["a", "z"], needs: needs.union(.encoding)) { store, trial in
      try await store.setValue(.undecodable(), forKey: "damaged")
      // A store may cache the value, but must decode it after it is reopened.
      try await body(trial.settled(store), trial)
    }
  }

  /// Adds the cases where files of a store are altered while it is closed.
  mutating func addAlteredFileCases() {
    begin(.damage, checking: .badInput)
    for (variant, alteration) in zip(["", "a", "b", "c"], FileAlteration.allCases) {
      add(
        "250\(variant)",
        "a store with \(alteration) does not open as an empty store, and a refusal to open changes nothing",
        keys: (0..<40).map { StoreKey(integer: $0) }, needs: [.persistence, .ownFiles]
      ) { store, trial in
        let reopened = try await trial.reopen(store)
        try await expect("the count of entries before the file is altered", reopened.count(), equals: 40)
        try await reopened.close()
        for name in try trial.location.dataFileNames() {
          try await expectNotEmpty(trial, alteration, of: name)
        }
      }
    }
  }
}

/// Throws a ``Mismatch`` unless an operation throws an error with the key of the damaged entry.
@discardableResult
private func expectDamage<Result>(
  in subject: String, _ operation: () async throws -> Result
) async throws -> StoreError {
  try await expect("\(subject) with the damaged entry", throws: .corrupted, key: "damaged", by: operation)
}

/// Throws a ``Mismatch`` unless a store lists all three keys, if it can do so without decoding values.
private func expectAllKeys<Store>(of store: Store, in trial: Trial<Store>) async throws {
  guard !trial.lacks(.keysWithoutValues) else { return }
  try await expectWithoutDecoding("the keys", equals: ["a", "damaged", "z"]) {
    try await store.keys(in: .all, limit: .max)
  }
}

/// Throws a ``Mismatch`` unless a read that needs no value returns what is expected.
private func expectWithoutDecoding<Result: Equatable>(
  _ subject: String, equals expected: Result, by read: () async throws -> Result
) async throws {
  do {
    try await expect(subject, read(), equals: expected)
  } catch let error as StoreError {
    throw Mismatch(
      subject: "\(subject), in a store of a suite without `lacking: .keysWithoutValues`",
      expected: "\(text(of: expected)), without decoding a value", got: text(of: error))
  }
}

/// Throws a ``Mismatch`` if a store opens as an empty store after one of its files was altered, or if a refusal to open
/// it changes that file.
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
      "whether \(name) is unchanged after a refusal to open the store", altered.content(of: name) == content,
      equals: true
    )
  }
  // The store may use the folder that replaces the file, and then contains other data.
  if alteration == .unreadable, try !altered.isEmptyFolder(name) { return }
  let isTakenForEmpty: Bool
  do {
    let (count, entries) = (try await store.count(), try await store.entries(in: .all, limit: .max))
    let findings = try await AnyDataStore(store).maintenance?.verify().findings ?? []
    isTakenForEmpty = count == 0 && entries.isEmpty && findings.isEmpty
  } catch is StoreError {
    // The loss is reported as damage, or the store has nothing to verify.
    isTakenForEmpty = false
  }
  do {
    try await store.close()
  } catch is StoreError {
    // Closing may report the damage again.
  }
  try expect(
    "whether a store of 40 entries with \(alteration), \(name), opens as an empty store", isTakenForEmpty,
    equals: false)
}

/// An alteration of a file while no store has it open.
enum FileAlteration: CaseIterable, CustomStringConvertible {
  case cut, inverted, emptied, unreadable

  var description: String {
    switch self {
    case .cut: "a file truncated to half its size"
    case .inverted: "a file with every bit inverted"
    case .emptied: "an emptied file"
    case .unreadable: "an unreadable file"
    }
  }
}

extension ConformanceLocation {
  /// Returns the paths of all files in the folder and its subfolders that are neither empty nor lock files.
  ///
  /// - Throws: Any error from the file system.
  func dataFileNames() throws -> [String] {
    try fileNames().filter { name in
      guard !name.contains("lock"), let attributes = try POSIXFileSystem().attributes(at: path(name)) else {
        return false
      }
      return attributes.kind == .file && attributes.size > 0
    }
  }

  /// Returns the sizes in bytes of all files that are neither empty nor lock files.
  ///
  /// - Throws: Any error from the file system.
  func dataFileSizes() throws -> [UInt64] {
    try dataFileNames().compactMap { name in
      try POSIXFileSystem().attributes(at: path(name)).map { UInt64(max(0, $0.size)) }
    }
  }

  /// Returns whether a name is that of an empty folder.
  ///
  /// - Throws: Any error from the file system.
  func isEmptyFolder(_ name: String) throws -> Bool {
    try POSIXFileSystem().attributes(at: path(name))?.kind == .directory
      && FileManager.default.contentsOfDirectory(atPath: path(name)).isEmpty
  }

  /// Returns the content of a file, or `nil` if there is no file.
  ///
  /// - Throws: Any error from the file system.
  func content(of name: String) throws -> Data? {
    let attributes = try POSIXFileSystem().attributes(at: path(name))
    return attributes?.kind == .file ? try Data(contentsOf: URL(filePath: path(name))) : nil
  }

  /// Alters a file.
  ///
  /// - Returns: A Boolean value that indicates whether the file was altered.
  /// - Throws: Any error from the file system.
  func alter(_ name: String, _ alteration: FileAlteration) throws -> Bool {
    let url = URL(filePath: path(name))
    let content = try Data(contentsOf: url)
    // The file is altered in place, so that it keeps its identity, its owner and its permissions.
    let handle = try FileHandle(forWritingTo: url)
    switch alteration {
    case .cut: try handle.truncate(atOffset: UInt64(content.count / 2))
    case .inverted: try handle.write(contentsOf: Data(content.map { ~$0 }))
    case .emptied: try handle.truncate(atOffset: 0)
    case .unreadable:
      try handle.close()
      // Permissions do not prevent root from reading the file, but a folder in its place does.
      try FileManager.default.removeItem(at: url)
      try FileManager.default.createDirectory(at: url, withIntermediateDirectories: false)
      return true
    }
    try handle.close()
    return true
  }
}
