#if Compression && Crypto && LMDB && Metrics && SQLite
import Larder
import LarderTesting
import TestSupport
import Testing

/// Stores that break one rule each, which no compiler sees and only some cases of the suite find.
@Suite(.limitedParallelism) struct RuleMutantTests {
  /// The faults, and the cases that find each of them.
  ///
  /// A case with concurrent tasks does not find its fault in each run, and is not demanded.
  private static let mutants: [(RuleMutant.Fault?, [String])] = [
    (nil, []),
    (.passesNoKey, ["280", "281", "282"]),
    (.encodesAgain, ["282"]),
    (.reports(.corrupted, as: .undecodable), ["281", "283a", "283c"]),
    (.reports(.undecodable, as: .corrupted), ["283b"]),
    (.reports(.versionMismatch, as: .corrupted), ["283d", "286b"]),
    (.reports(.keyUnavailable, as: .corrupted), ["283e", "284"]),
    (.hidesUnreadableValues, ["281", "283a", "283b", "283c", "283d", "283e"]),
    (.recordsNoCodec, ["285", "286a", "286b"]),
    (.comparesNoVersions, ["286a", "286b"]),
    (.comparesOnlyOnOpening, ["286b"]),
    (.saysNothing, ["287"]),
    (.writesFirstSlotOnly, ["289a", "289c"]),
    (.updatesCopies, ["289b"]),
  ]

  @Test(arguments: mutants.indices) func `the suite finds`(_ index: Int) async throws {
    let (fault, expected) = Self.mutants[index]
    let suite = ConformanceSuite(named: "RuleMutant", codec: .json(), lacking: .observation) { location, codec in
      try RuleMutant(location.object { RuleMutant.Disk() }, codec, fault)
    }
    var failed: [String] = []
    for conformanceCase in suite.cases where conformanceCase.id.hasPrefix("28") && !conformanceCase.id.hasPrefix("288")
    {
      do {
        try await conformanceCase.run()
      } catch let failure as ConformanceFailure {
        failed.append(failure.conformanceCase.id)
      }
    }
    if !expected.contains("289c") { failed.removeAll { $0 == "289c" } }
    #expect(failed == expected, "\(fault.map { "\($0)" } ?? "no fault")")
  }
}

/// A store in memory that any number of objects share, and that breaks at most one rule.
private final class RuleMutant: DataStore {
  enum Fault: Sendable {
    case passesNoKey
    case encodesAgain
    case reports(StoreError.Code, as: StoreError.Code)
    case hidesUnreadableValues
    case recordsNoCodec
    case comparesNoVersions
    case comparesOnlyOnOpening
    case saysNothing
    case writesFirstSlotOnly
    case updatesCopies
  }

  final class Disk: Sendable {
    struct State: Sendable {
      var codecName: String?
      var entries = SortedEntries<[UInt8]>()
    }

    let state = Locked(State())
    let identity = StoreIdentity()
  }

  typealias Value = SampleValue?

  let information: StoreInformation
  private let disk: Disk
  private let fault: Fault?
  private let coder: ValueCoder<Value>
  private let isOpen = Locked(true)
  /// The entries that an object has read, which one with this fault takes for those of the store.
  private let copies = Locked<[StoreKey: [UInt8]]>([:])

  init(_ disk: Disk, _ codec: some Codec<Value>, _ fault: Fault?) throws {
    self.disk = disk
    self.fault = fault
    var information = StoreInformation(
      name: "mutant", durability: .synced, sharing: .betweenProcesses, identity: disk.identity)
    if case .saysNothing = fault {
    } else {
      information.entryLifetime = .untilRemoved
      information.readsMayBeCopies = false
      information.noteEncryption(by: codec)
    }
    self.information = information
    coder = ValueCoder(codec: codec, store: information.name)
    try disk.state.withLock { $0.codecName = try checkedName(replacing: $0.codecName, during: .open) }
  }

  /// Compares the codec with the recorded one, and returns the name to record.
  private func checkedName(replacing recorded: String?, during operation: StoreOperation) throws -> String? {
    switch (fault, operation) {
    case (.recordsNoCodec, _): return nil
    case (.comparesOnlyOnOpening, .apply), (.comparesOnlyOnOpening, .update): return recorded
    case (.comparesNoVersions, _):
      func base(_ name: String) -> Substring { name.prefix(while: \.isLetter) }
      let own = coder.codecRecord.name
      if let recorded, base(recorded) == base(own) { return own }
    default: break
    }
    guard let recorded else { return coder.codecRecord.name }
    return try coder.codecRecord.name(replacing: recorded, during: operation, store: information.name)
  }

  private func checkOpen(for operation: StoreOperation) throws {
    guard isOpen.withLock({ $0 }) else { throw information.closedError(for: operation) }
  }

  // MARK: Values

  private func reporting<Result>(_ body: () throws -> Result) throws -> Result {
    do {
      return try body()
    } catch let error as StoreError {
      guard case .reports(let code, let other) = fault, error.code == code else { throw error }
      throw StoreError(
        other, during: error.operation, store: error.store, key: error.key, message: "another code",
        underlying: error.underlying, isRetryable: other == .keyUnavailable)
    }
  }

  private func decode(_ bytes: [UInt8], _ key: StoreKey, _ operation: StoreOperation) throws -> Value? {
    do {
      return try reporting {
        if case .passesNoKey = fault {
          return try bytes.withUnsafeBytes {
            try coder.value(of: $0, forKey: key, passesKey: false, during: operation)
          }
        }
        return try coder.value(of: bytes, forKey: key, during: operation)
      }
    } catch {
      if case .hidesUnreadableValues = fault { return nil }
      throw error
    }
  }

  private func encode(_ value: Value, _ key: StoreKey, _ stored: [UInt8]?, _ operation: StoreOperation) throws
    -> [UInt8]
  {
    try reporting {
      var (stored, passesKey) = (stored, true)
      if case .encodesAgain = fault { stored = nil }
      if case .passesNoKey = fault { passesKey = false }
      var bytes: [UInt8] = []
      try coder.append(
        value, forKey: key, replacing: stored?[...], passesKey: passesKey, to: &bytes, during: operation)
      return bytes
    }
  }

  // MARK: Reading

  func value(forKey key: StoreKey) throws -> Value? {
    try information.check(key, for: .value)
    try checkOpen(for: .value)
    let bytes = disk.state.withLock { $0.entries[key] }
    copies.withLock { $0[key] = bytes }
    return try bytes.flatMap { try decode($0, key, .value) }
  }

  func values(forKeys keys: [StoreKey]) throws -> [Value?] {
    try information.check(keys, for: .values)
    try checkOpen(for: .values)
    let stored = disk.state.withLock { state in keys.map { state.entries[$0] } }
    copies.withLock { copies in for (key, bytes) in zip(keys, stored) { copies[key] = bytes } }
    return try zip(keys, stored).map { key, bytes in try bytes.flatMap { try decode($0, key, .values) } }
  }

  func entries(in range: KeyRange, limit: Int, order: ScanOrder) throws -> [StoreEntry<Value>] {
    try information.check(limit: limit, for: .entries)
    try checkOpen(for: .entries)
    return try disk.state.withLock { $0.entries.entries(in: range, limit: limit, order: order) }.compactMap { entry in
      try decode(entry.value, entry.key, .entries).map { StoreEntry(key: entry.key, value: $0) }
    }
  }

  func keys(in range: KeyRange, limit: Int, order: ScanOrder) throws -> [StoreKey] {
    try information.check(limit: limit, for: .keys)
    try checkOpen(for: .keys)
    return disk.state.withLock { $0.entries.keys(in: range, limit: limit, order: order) }
  }

  func count(in range: KeyRange) throws -> Int {
    try checkOpen(for: .count)
    return disk.state.withLock { $0.entries.count(in: range) }
  }

  // MARK: Writing

  func apply(_ changes: ChangeBatch<Value>) throws {
    try information.check(changes)
    try checkOpen(for: .apply)
    let encoded = try changes.changes.map { try $0.mapValue { try encode($1, $0, nil, .apply) } }
    try disk.state.withLock { state in
      state.codecName = try checkedName(replacing: state.codecName, during: .apply)
      var displaced: [[UInt8]] = []
      for change in encoded { state.entries.apply(change, displacing: &displaced) }
    }
  }

  func update<Result: Sendable>(
    deciding keys: [StoreKey], _ body: @escaping @Sendable (inout UpdateSlots<Value>) -> UpdateDecision<Result>
  ) throws -> Result {
    try information.check(updateOf: keys)
    try checkOpen(for: .update)
    let copies = copies.withLock { $0 }
    return try disk.state.withLock { state in
      let stored = keys.map { key -> [UInt8]? in
        if case .updatesCopies = fault, let copy = copies[key] { return copy }
        return state.entries[key]
      }
      var slots = UpdateSlots(
        stored: try zip(keys, stored).map { key, bytes in try bytes.flatMap { try decode($0, key, .update) } })
      let decision = body(&slots)
      guard decision.isCommit else { return decision.result }
      var changes: [BatchChange<[UInt8]>] = []
      for index in slots.assignedIndices {
        let bytes = try slots[index].map { try encode($0, keys[index], stored[index], .update) }
        changes.append(bytes.map { .set(keys[index], $0) } ?? .remove(keys[index]))
        if case .writesFirstSlotOnly = fault { break }
      }
      state.codecName = try checkedName(replacing: state.codecName, during: .update)
      var displaced: [[UInt8]] = []
      for change in changes { state.entries.apply(change, displacing: &displaced) }
      return decision.result
    }
  }

  func synchronize() throws { try checkOpen(for: .synchronize) }

  func close() { isOpen.withLock { $0 = false } }
}
#endif
