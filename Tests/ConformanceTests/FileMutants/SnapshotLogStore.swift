#if Compression && Crypto && LMDB && Metrics && SQLite
import Larder
import LarderFiles

/// A store of integers that appends its whole content to a log, as a line with a checksum, for each change.
///
/// Tests of faulty recovery use it.
final class SnapshotLogStore: DataStore {
  private struct State {
    var file: any OpenStoreFile
    var end: Int64
    var entries: [StoreKey: Int] = [:]
    var isClosed = false
  }

  let information = StoreInformation(name: "SnapshotLogStore", durability: .synced, sharing: .exclusive)
  private let state: Locked<State>

  init(path: String, fileSystem: some StoreFileSystem, fault: RecoveryFault?) throws {
    if try fileSystem.attributes(at: path) == nil { try fileSystem.replaceFile(at: path) { _ in } }
    try fileSystem.removeStaleTemporaryFiles(of: path)
    let text = try fileSystem.open(path, .read).readAll()
    let lines = text.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
    let records = lines.dropLast().map(SnapshotLogStore.entries(of:))
    // The log ends at the first invalid line.
    let good = records.prefix { $0 != nil }.compactMap(\.self)
    let isTorn = good.count < records.count || lines.last?.isEmpty == false
    var log = good.last.map(SnapshotLogStore.line(of:)) ?? []
    if isTorn {
      switch fault {
      case .writesBehindTornTail: log = text
      case .rewritesInPlace:
        let file = try fileSystem.open(path, .readWrite)
        try file.truncate(to: 0)
        try file.writeAll(log)
        try file.synchronizeThroughInterruptions()
      case nil: try fileSystem.replaceFile(at: path) { try $0.write(log) }
      }
    } else {
      log = text
    }
    let file = try fileSystem.open(path, .readWrite)
    state = Locked(State(file: file, end: Int64(log.count), entries: good.last ?? [:]))
  }

  private static func checksum(of text: Substring) -> UInt32 {
    CRC32C.checksum(of: text.utf8)
  }

  private static func line(of entries: [StoreKey: Int]) -> [UInt8] {
    let text = entries.sorted { $0.key < $1.key }.map {
      "\($0.key.bytes.map(String.init).joined(separator: "."))=\($0.value)"
    }
    .joined(separator: ",")
    return Array("\(checksum(of: text[...])) \(text)\n".utf8)
  }

  private static func entries(of line: ArraySlice<UInt8>) -> [StoreKey: Int]? {
    let parts = String(decoding: line, as: UTF8.self).split(separator: " ", omittingEmptySubsequences: false)
    guard parts.count == 2, parts[0] == "\(checksum(of: parts[1]))" else { return nil }
    var entries: [StoreKey: Int] = [:]
    for entry in parts[1].split(separator: ",") {
      let halves = entry.split(separator: "=")
      entries[StoreKey(bytes: halves[0].split(separator: ".").compactMap { UInt8($0) })] = Int(halves[1])
    }
    return entries
  }

  func value(forKey key: StoreKey) throws -> Int? { try read(for: .value) { $0[key] } }
  func values(forKeys keys: [StoreKey]) throws -> [Int?] {
    try read(for: .values) { entries in keys.map { entries[$0] } }
  }
  func entries(in range: KeyRange, limit: Int, order: ScanOrder) throws -> [StoreEntry<Int>] {
    try read(for: .entries) { entries in
      entries.filter { range.contains($0.key) }.sorted { ($0.key < $1.key) == (order == .ascending) }.prefix(limit)
        .map { StoreEntry(key: $0.key, value: $0.value) }
    }
  }
  func keys(in range: KeyRange, limit: Int, order: ScanOrder) throws -> [StoreKey] {
    try entries(in: range, limit: limit, order: order).map(\.key)
  }
  func count(in range: KeyRange) throws -> Int { try keys(in: range, limit: .max, order: .ascending).count }

  func apply(_ changes: ChangeBatch<Int>) throws {
    try write(during: .apply) { entries in
      for change in changes.changes {
        switch change {
        case .set(let key, let value): entries[key] = value
        case .remove(let key): entries[key] = nil
        case .removeAll(let range): entries = entries.filter { !range.contains($0.key) }
        }
      }
    }
  }

  func update<Result: Sendable>(
    deciding keys: [StoreKey], _ body: @escaping @Sendable (inout UpdateSlots<Int>) -> UpdateDecision<Result>
  ) throws -> Result {
    try write(during: .update) { entries in
      var slots = UpdateSlots(stored: keys.map { entries[$0] })
      let decision = body(&slots)
      for index in decision.isCommit ? slots.assignedIndices : [] { entries[keys[index]] = slots[index] }
      return decision.result
    }
  }

  func synchronize() throws { try read(for: .synchronize) { _ in } }

  func close() {
    state.withLock { $0.isClosed = true }
  }

  private func read<Result>(
    for operation: StoreOperation, _ body: ([StoreKey: Int]) -> sending Result
  ) throws -> sending Result {
    try state.withLock { state in
      guard !state.isClosed else { throw information.closedError(for: operation) }
      return body(state.entries)
    }
  }

  private func write<Result>(
    during operation: StoreOperation, _ body: (inout [StoreKey: Int]) throws -> sending Result
  ) throws -> sending Result {
    try state.withLock { state in
      guard !state.isClosed else { throw information.closedError(for: operation) }
      var entries = state.entries
      let result = try body(&entries)
      let line = SnapshotLogStore.line(of: entries)
      try state.file.writeAll(line, at: state.end)
      try state.file.synchronizeThroughInterruptions()
      state.end += Int64(line.count)
      state.entries = entries
      return result
    }
  }
}

/// A fault in the recovery of a ``SnapshotLogStore``.
enum RecoveryFault: String, CaseIterable, Sendable {
  /// A torn tail of the log stays, and later changes are appended to it.
  case writesBehindTornTail
  /// A torn tail is removed by rewriting the log in place.
  case rewritesInPlace
}
#endif
