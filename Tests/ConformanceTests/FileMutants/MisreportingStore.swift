#if Compression && Crypto && LMDB && Metrics && SQLite
import Larder
import LarderFiles
import LarderJSON

/// A `JSONFileStore` with one fault in its results or its errors.
final class MisreportingStore: DataStore {
  let information: StoreInformation
  private let base: JSONFileStore<Int>
  private let fileSystem: any StoreFileSystem
  private let fault: ReportFault?
  private let lock: FileLock?

  init(fileSystem: some StoreFileSystem, fault: ReportFault?) async throws {
    if fault == .neverRecovers, try fileSystem.attributes(at: "/failed") != nil {
      throw StoreError(.ioFailed, during: .open, message: "an earlier operation failed")
    }
    do {
      base = try await JSONFileStore(path: "/store.json", codec: .json(), fileSystem: fileSystem)
    } catch let error as StoreError {
      throw MisreportingStore.reported(error, fault)
    }
    if fault == .keepsLockWhenClosingFails {
      lock = try FileLock.acquire("/other.lock", in: fileSystem)
      guard lock != nil else { throw StoreError(.locked, during: .open, message: "it is open") }
    } else {
      lock = nil
    }
    information = base.information
    self.fileSystem = fileSystem
    self.fault = fault
  }

  private static func reported(_ error: StoreError, _ fault: ReportFault?) -> any Error {
    switch fault {
    case .throwsFileErrors: error.underlying ?? error
    case .reportsFullAsFailed where error.code == .full:
      StoreError(.ioFailed, during: error.operation, message: error.message, outcome: error.outcome)
    default: error
    }
  }

  private func reporting<Result>(_ body: () async throws -> Result) async throws -> Result {
    do {
      return try await body()
    } catch let error as StoreError {
      if fault == .neverRecovers { _ = try fileSystem.open("/failed", .createIfMissing) }
      throw MisreportingStore.reported(error, fault)
    }
  }

  func value(forKey key: StoreKey) async throws -> Int? { try base.value(forKey: key) }
  func values(forKeys keys: [StoreKey]) async throws -> [Int?] { try await base.values(forKeys: keys) }
  func entries(in range: KeyRange, limit: Int, order: ScanOrder) async throws -> [StoreEntry<Int>] {
    let entries = try await base.entries(in: range, limit: limit, order: order)
    return fault == .givesFirstEntryTwice ? entries.prefix(1) + entries : entries
  }
  func keys(in range: KeyRange, limit: Int, order: ScanOrder) async throws -> [StoreKey] {
    try base.keys(in: range, limit: limit, order: order)
  }
  func count(in range: KeyRange) async throws -> Int {
    let count = try base.count(in: range)
    return fault == .countsOneLess ? max(0, count - 1) : count
  }
  func apply(_ changes: ChangeBatch<Int>) async throws { try await reporting { try await base.apply(changes) } }
  func update<Result: Sendable>(
    deciding keys: [StoreKey], _ body: @escaping @Sendable (inout UpdateSlots<Int>) -> UpdateDecision<Result>
  ) async throws -> Result {
    do {
      return try await base.update(deciding: keys, body)
    } catch let error as StoreError {
      throw MisreportingStore.reported(error, fault)
    }
  }
  func synchronize() async throws { try await reporting { try await base.synchronize() } }
  func close() async throws {
    try await reporting { try await base.close() }
    try lock?.release()
  }
}

/// A fault in the errors or the results of a ``MisreportingStore``.
enum ReportFault: String, CaseIterable, Sendable {
  /// Errors of the file system are thrown unchanged.
  case throwsFileErrors
  /// A full disk is reported as any other failure.
  case reportsFullAsFailed
  /// A store stays open if closing it failed.
  case keepsLockWhenClosingFails
  /// A scan returns its first entry twice.
  case givesFirstEntryTwice
  /// The count is one too low.
  case countsOneLess
  /// After a failure every operation fails, even once the store is opened again.
  case neverRecovers
}
#endif
