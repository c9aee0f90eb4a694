import Foundation
import Larder
import LarderFiles
import LarderTesting
import Testing

/// The cases with another process or altered files find each fault of a store, and report no correct store.
@Suite struct ProcessMutantTests {
  private static func suite(of fault: ProcessFault?) -> ConformanceSuite {
    ConformanceSuite(
      named: fault?.rawValue ?? "no fault", lacking: .readOnlyAccess,
      child: { await start($0, fault?.rawValue ?? "") }, open: { try open($0, fault: fault) })
  }

  private static func start(_ order: String, _ fault: String) async {
    await #expect(processExitsWith: .failure) { [order, fault] in
      await ConformanceChild.run(order) { try ProcessMutantTests.open($0, fault: ProcessFault(rawValue: fault)) }
    }
  }

  private static func open(_ location: ConformanceLocation, fault: ProcessFault?) throws -> WholeFileMutant {
    try WholeFileMutant(path: location.path("store.json"), fault: fault)
  }

  @Test(arguments: Set(ProcessFault.allCases.flatMap(\.detectors)).sorted())
  func `a store without a fault passes`(_ id: String) async throws {
    try await #require(ProcessMutantTests.suite(of: nil).cases.first { $0.id == id }).run()
  }

  @Test(arguments: ProcessFault.allCases) func `every fault is found`(_ fault: ProcessFault) async throws {
    for id in fault.detectors {
      let detector = try #require(ProcessMutantTests.suite(of: fault).cases.first { $0.id == id })
      let failure = await #expect(throws: ConformanceFailure.self) { try await detector.run() }
      if let failure { print(failure) }
    }
  }

  @Test func `errors of the other process are reported`() async throws {
    let suite = ConformanceSuite(
      named: "no store", lacking: .readOnlyAccess,
      child: { order in
        await #expect(processExitsWith: .failure) { [order = order as String] in
          await ConformanceChild.run(order) { _ -> WholeFileMutant in throw SampleValue.Refusal.decoding }
        }
      }, open: { try ProcessMutantTests.open($0, fault: nil) })
    for id in ["251", "252"] {
      let conformanceCase = try #require(suite.cases.first { $0.id == id })
      let failure = try await #require(throws: ConformanceFailure.self) { try await conformanceCase.run() }
      #expect(failure.got.contains("Refusal"), "\(failure)")
    }
  }
}

/// A store that rewrites its whole file for each change, with one fault or none.
final class WholeFileMutant: DataStore {
  typealias Value = SampleValue?

  private struct Record: Codable {
    var key: [UInt8]
    var value: [UInt8]
  }

  private let path: String
  private let fault: ProcessFault?
  private let disk = RecordDisk()
  private let base: RecordStore<SampleValue?>
  private let lock: Locked<FileLock?>

  init(path: String, fault: ProcessFault?) throws {
    self.path = path
    self.fault = fault
    let lockPath = fault == .locksOnlyItsProcess ? "\(path).lock\(getpid())" : "\(path).lock"
    guard let lock = try FileLock.acquire(lockPath, in: POSIXFileSystem()) else {
      throw StoreError(.locked, during: .open, store: "records", message: "it is open already")
    }
    self.lock = Locked(lock)
    base = try RecordStore(disk: disk)
    guard FileManager.default.fileExists(atPath: path) else { return }
    do {
      try load()
    } catch {
      base.close()
      throw StoreError(.corrupted, during: .open, store: "records", message: "it is damaged", underlying: error)
    }
  }

  private func load() throws {
    let content: Data
    do {
      content = try Data(contentsOf: URL(filePath: path))
    } catch  where fault == .unreadableIsEmpty {
      return
    }
    do {
      let records = try JSONDecoder().decode([Record].self, from: content)
      disk.state.withLock { state in
        var displaced: [[UInt8]] = []
        for record in records {
          state.records.apply(.set(StoreKey(bytes: record.key), record.value), displacing: &displaced)
        }
      }
    } catch {
      if fault == .damagedIsEmpty { return }
      if fault == .removesDamaged { try FileManager.default.removeItem(atPath: path) }
      throw error
    }
  }

  private func save() throws {
    // No other caller writes during this update.
    try disk.state.withLock { state in
      let records = state.records.entries(in: .all, limit: .max, order: .ascending)
        .map { Record(key: $0.key.bytes, value: $0.value) }
      let content = try JSONEncoder().encode(records)
      if fault == .writesInPlace {
        try content.write(to: URL(filePath: path))
      } else {
        try POSIXFileSystem().replaceFile(at: path) { try $0.write(Array(content)) }
      }
    }
  }

  var information: StoreInformation { base.information }

  func value(forKey key: StoreKey) throws -> Value? { try base.value(forKey: key) }

  func values(forKeys keys: [StoreKey]) throws -> [Value?] { try base.values(forKeys: keys) }

  func entries(in range: KeyRange, limit: Int, order: ScanOrder) throws -> [StoreEntry<Value>] {
    try base.entries(in: range, limit: limit, order: order)
  }

  func keys(in range: KeyRange, limit: Int, order: ScanOrder) throws -> [StoreKey] {
    try base.keys(in: range, limit: limit, order: order)
  }

  func count(in range: KeyRange) throws -> Int { try base.count(in: range) }

  func apply(_ changes: ChangeBatch<Value>) throws {
    try base.apply(changes)
    if fault != .writesLate { try save() }
  }

  func update<Result: Sendable>(
    deciding keys: [StoreKey], _ body: @escaping @Sendable (inout UpdateSlots<Value>) -> UpdateDecision<Result>
  ) throws -> Result {
    let result = try base.update(deciding: keys, body)
    if fault != .writesLate { try save() }
    return result
  }

  func synchronize() throws {
    try base.synchronize()
    if fault == .writesLate { try save() }
  }

  func close() throws {
    let isFirst = lock.withLock { $0 != nil }
    if isFirst, fault == .writesLate { try save() }
    base.close()
    try lock.withLock { lock in
      try lock?.release()
      lock = nil
    }
  }
}

/// A fault of a ``WholeFileMutant`` that shows only in another process, in a process that is killed, or with altered
/// files.
enum ProcessFault: String, CaseIterable, Sendable {
  /// Only one store of a process can open the file, but any number of processes can.
  case locksOnlyItsProcess
  /// The file is rewritten in place, so it is temporarily incomplete.
  case writesInPlace
  /// Acknowledged changes stay in memory until the store is synchronized or closed.
  case writesLate
  /// An undecodable file is treated as empty.
  case damagedIsEmpty
  /// An unreadable file is treated as empty.
  case unreadableIsEmpty
  /// An undecodable file is removed, and opening fails.
  case removesDamaged

  /// The identities of the cases that must find the fault.
  var detectors: [String] {
    switch self {
    case .locksOnlyItsProcess: ["251"]
    case .writesInPlace: ["252a"]
    case .writesLate: ["252"]
    case .damagedIsEmpty: ["250", "250a", "250b"]
    case .unreadableIsEmpty: ["250c"]
    case .removesDamaged: ["250", "250a"]
    }
  }
}
