#if LMDB
import CLMDB
import Larder
import LarderFiles

/// An environment that is read page by page, so damage neither ends the process nor hides other entries.
///
/// Its data file may be one of LMDB 0.9 or of LMDB 1.0. If the loaded library can open it, a read transaction of the library
/// protects the pages that are being read from writers. Otherwise, a read is repeated if it may have been disturbed.
final class ExaminedEnvironment: Sendable {
  /// The number of times that a disturbed read is made.
  private static let maximumAttempts = 100

  /// The number of times that it is made in a read transaction of the library, which may have another state of a damaged file.
  private static let maximumProtectedAttempts = 50

  let information: StoreInformation
  private let reader: DataFileReader
  private let environment: LMDBEnvironment?
  private let findsPossiblyOlder: Bool
  private let search = Locked<PageSearch?>(nil)
  private let reads = RunningOperations()
  private let queue = DispatchQueueExecutor(label: "Larder.ExaminedEnvironment")

  /// Opens an environment that is not changed.
  ///
  /// - Parameters:
  ///   - configuration: The environment.
  ///   - findsPossiblyOlder: A Boolean value that indicates whether entries are found that may be older or of another
  ///     database.
  /// - Throws: ``StoreError``: the errors of opening an ``LMDBEnvironment``, but `versionMismatch` only for an unknown version,
  ///   and `corrupted` only if both meta pages are damaged.
  init(_ configuration: EnvironmentConfiguration, findsPossiblyOlder: Bool) async throws {
    self.findsPossiblyOlder = findsPossiblyOlder
    var opened: LMDBEnvironment?
    do {
      opened = try await LMDBEnvironment(configuration)
    } catch let error as StoreError {
      // The library refuses damaged files and those of the other version. If the reader refuses them too, its error says more.
      guard ![.notFound, .notPermitted, .locked, .conflict, .unsupported].contains(error.code) else { throw error }
    }
    environment = opened
    information = StoreInformation(
      name: configuration.name, durability: Durability(configuration.durability), sharing: .betweenProcesses,
      access: .readOnly, maximumValueSize: SharedEnvironment.maximumValueSize, entryLifetime: .untilRemoved)
    do {
      reader = try await queue.run { [opened] in
        let reader = try configuration.findFiles().map {
          try DataFileReader($0.dataFile, store: configuration.name)
        }
        guard let reader, opened?.handle.environment.opened.identity ?? reader.identity == reader.identity else {
          throw configuration.movedWhileOpening()
        }
        return reader
      }
    } catch {
      try await opened?.close()
      throw error
    }
  }

  /// Runs a closure on a consistent state of the data file.
  ///
  /// - Throws: The error that `body` throws, except that a `FileError` becomes a ``StoreError``; ``StoreError`` with `closed`, or
  ///   with `conflict` if other programs write too much.
  func read<Result: Sendable>(
    for operation: StoreOperation, _ body: @escaping @Sendable (DataFileSnapshot) throws -> Result
  ) async throws -> Result {
    try await reads.run(operation, of: information) {
      try await queue.run { [self] in
        do {
          for number in 0..<ExaminedEnvironment.maximumAttempts {
            let isProtected = number < ExaminedEnvironment.maximumProtectedAttempts
            if let result = try attempt(for: operation, isProtected: isProtected, body) { return try result.get() }
          }
        } catch let error as FileError {
          throw StoreError(
            error, during: operation, store: information.name, message: "the data file cannot be read")
        }
        throw StoreError(
          .conflict, during: operation, store: information.name,
          message: "other programs write to the data file too often to read it; try again when they write less",
          isRetryable: true)
      }
    }
  }

  /// Returns the result of a closure, or `nil` if it may have read pages of several states.
  private func attempt<Result>(
    for operation: StoreOperation, isProtected: Bool, _ body: (DataFileSnapshot) throws -> Result
  ) throws -> Swift.Result<Result, any Error>? {
    let snapshot = try reader.latestSnapshot(usesPrevious: findsPossiblyOlder)
    if let environment, isProtected, snapshot.damagedMetaPages.isEmpty {
      return try environment.handle.read(for: operation) { transaction in
        // A transaction protects the pages of its own state only.
        guard mdb_txn_id(transaction) == snapshot.meta.transaction else { return nil }
        return Swift.Result { try body(snapshot) }
      }
    }
    let result = Swift.Result { try body(snapshot) }
    return try reader.isOutdated(snapshot) ? nil : result
  }

  /// Returns the leaves of a named database that damage has made unreachable.
  ///
  /// The first call for a state reads all pages of the file.
  ///
  /// - Throws: `FileError`.
  func unreachedLeaves(ofDatabase name: StoreKey, in snapshot: DataFileSnapshot) throws -> UnreachedLeaves {
    let known = search.withLock { $0 }
    if let known, known.meta == snapshot.meta { return known.leaves(ofDatabase: name) }
    let found = try PageSearch(in: snapshot, findsPossiblyOlder: findsPossiblyOlder)
    search.withLock { $0 = found }
    return found.leaves(ofDatabase: name)
  }

  /// Waits for running reads, and closes the files.
  func close() async throws {
    await reads.close()
    await queue.run { [reader] in reader.close() }
    try await environment?.close()
  }
}

extension DataFileSnapshot {
  /// Returns the record of a named database, or `nil` if there isn't one.
  ///
  /// - Throws: ``StoreError``: `corrupted` if it cannot be read; `unsupported` if it is no database of a store. `FileError`.
  func database(named name: StoreKey, store: String, during operation: StoreOperation) throws -> DatabaseRecord? {
    var found: DatabaseRecord?
    try TreeScan.run(from: main.root, in: self, range: .only(meta.format.key(ofDatabase: name)), readsValues: false) {
      switch $0 {
      case .entry(_, .database(let record)): found = record
      case .entry:
        throw StoreError(
          .unsupported, during: operation, store: store,
          message: "the environment has a plain entry of this name, not a named database; choose another name")
      case .damage(let damage, let lost):
        guard lost != nil else { return true }
        // Without the key of the database, which is not one of the store.
        throw StoreError(
          .corrupted, during: operation, store: store,
          message:
            "page \(damage.page) of the data file \(damage.problem), so that the store cannot be found; copy the state before the latest transaction with larder salvage "
            + "--possibly-older, or restore a backup"
        )
      }
      return true
    }
    guard let found else { return nil }
    guard found.flags == 0 else {
      throw StoreError(
        .unsupported, during: operation, store: store,
        message: "the named database allows several values per key or uses its own key order; choose another name")
    }
    return found
  }

  private var main: DatabaseRecord { meta.main }
}

/// A damaged page, as the underlying error of a read that found it.
struct DamagedPageError: UnreadableKeysError, CustomStringConvertible {
  let keys: KeyRange
  private let damage: PageDamage

  init(_ damage: PageDamage, losing keys: KeyRange) {
    self.damage = damage
    self.keys = keys
  }

  var description: String {
    "page \(damage.page) of the data file \(damage.problem)\(damage.remark.map { "; \($0)" } ?? "")"
  }

  /// Returns the error of an operation.
  func storeError(during operation: StoreOperation, store: String) -> StoreError {
    // A single lost key is known.
    let key = keys == .only(keys.lowerBound) ? keys.lowerBound : nil
    return StoreError(
      .corrupted, during: operation, store: store, key: key,
      message: "\(self); read the other entries with larder salvage, or restore a backup", underlying: self)
  }
}
#endif
