#if LMDB
import Larder
import LarderFiles

/// The result of ``LMDBEnvironment/migrate(from:to:)``.
public struct LMDBMigration: Sendable, Hashable {
  /// The version of LMDB that can read the old data file, `0.9` or `1.0`.
  public let oldVersion: String
  /// The version of LMDB that can read the new data file, `0.9` or `1.0`.
  public let newVersion: String
  /// The number of named databases, including Larder's own.
  public let databaseCount: Int
  /// The number of entries of all databases.
  public let entryCount: Int
}

extension LMDBEnvironment {
  /// Writes a copy of an environment of LMDB 0.9 or 1.0 that the version of LMDB that this process has loaded can open.
  ///
  /// ```swift
  /// try await LMDBEnvironment.migrate(from: "shop", to: "shop-1.0")
  /// ```
  ///
  /// All databases are copied byte for byte, with the records of codecs and labels. The copy is compared with the old
  /// environment, and appears at the new path once it is complete and durable. The old environment stays as it is. If the
  /// process dies, the next migration to the same folder removes what it left and starts again.
  ///
  /// An environment of the loaded version can be copied too; the copy has no free pages.
  ///
  /// - Parameters:
  ///   - path: The path of the old environment, a folder or a data file.
  ///   - newPath: The path of the copy, where nothing may exist yet. The copy is a folder if the environment is one, else a
  ///     file.
  /// - Returns: The versions, and the numbers of databases and entries.
  /// - Throws: `StoreError`: `notFound`; `locked` if a program has the old environment open; `conflict` if a program wrote to
  ///   it during the migration; `corrupted` if it is damaged; `unrecognizedFormat` or `versionMismatch` if it is no file of
  ///   LMDB 0.9 or 1.0; `unsupported` if a database allows several values per key or has its own key order, or the pages are
  ///   encrypted; `invalidArgument` if something exists at `newPath`; `full`; `ioFailed`. Nothing is at the new path then,
  ///   unless the outcome is `unknown`.
  @discardableResult
  public static func migrate(from path: String, to newPath: String) async throws -> LMDBMigration {
    try await migrate(from: path, to: newPath) { _ in }
  }

  /// Migrates an environment.
  ///
  /// - Parameter didWrite: A closure that receives the path of the copy before it is compared, for tests.
  static func migrate(
    from path: String, to newPath: String, didWrite: @escaping @Sendable (String) throws -> Void
  ) async throws -> LMDBMigration {
    let old = EnvironmentConfiguration(path: path, access: .readOnly, createsIfMissing: false)
    let files = try await EnvironmentTable.unusedFiles(of: old, during: .migrate)
    return try await DispatchQueueExecutor(label: "Larder.LMDBEnvironment.migration").run {
      try Migration(old: files, name: old.name, didWrite: didWrite).run(to: newPath)
    }
  }
}

/// A migration of the files of an environment, which no program has open.
private struct Migration {
  let old: EnvironmentFiles
  let name: String
  let didWrite: @Sendable (String) throws -> Void

  func run(to newPath: String) throws -> LMDBMigration {
    let reader = try DataFileReader(old.dataFile, store: name)
    defer { reader.close() }
    let snapshot = try reader.latestSnapshot()
    guard snapshot.damagedMetaPages.isEmpty else {
      throw MigrationError.damaged("a meta page of the data file is damaged", store: name)
    }
    let copy = try StoreCopy(
      EnvironmentFiles.all(at: newPath, old.layout), of: old.all, during: .migrate, store: name)
    var (databaseCount, entryCount) = (0, 0)
    do {
      try copy.write(asFolder: old.layout == .folder) { path in
        let source = DatabaseListing(snapshot, store: name)
        (databaseCount, entryCount) = try write(source, to: path)
        try didWrite(path)
        let written = try DataFileReader(EnvironmentFiles.paths(path, old.layout).data, store: name)
        defer { written.close() }
        try source.compare(with: DatabaseListing(written.latestSnapshot(), store: name))
        // The pages may have been reused.
        guard try reader.metaPages().valid.first == snapshot.meta else {
          throw StoreError(
            .conflict, during: .migrate, store: name,
            message: "another program has written to the environment; end it, then migrate again")
        }
      }
    } catch let error as LMDBError {
      throw StoreError(error, during: .migrate, store: name, message: "the new environment could not be written")
    }
    return LMDBMigration(
      oldVersion: snapshot.meta.format.library, newVersion: DataFileFormat.linked.library,
      databaseCount: databaseCount, entryCount: entryCount)
  }

  /// Writes all databases into a new environment, and closes it.
  ///
  /// - Returns: The number of named databases, and that of all entries.
  private func write(_ source: DatabaseListing, to path: String) throws -> (databaseCount: Int, entryCount: Int) {
    let target = try MigrationTarget(path: path)
    defer { target.close() }
    var (entryCount, names): (Int, [StoreKey]) = (0, [])
    // The plain entries of other programs, beside the names.
    try source.forEachBatch(of: nil) { entries, databases in
      try target.append(entries, to: nil)
      entryCount += entries.count
      names += databases
    }
    for name in names {
      let text = try source.name(ofKey: name)
      try target.append([], to: text)
      try source.forEachBatch(of: name) { entries, _ in
        try target.append(entries, to: text)
        entryCount += entries.count
      }
    }
    try target.synchronize()
    return (names.count, entryCount)
  }
}

/// The errors of a migration.
enum MigrationError {
  /// Returns the error of a damaged environment.
  static func damaged(_ problem: String, store: String, underlying: (any Error)? = nil) -> StoreError {
    StoreError(
      .corrupted, during: .migrate, store: store,
      message: "\(problem); copy what is readable with larder salvage, or restore a backup", underlying: underlying)
  }
}

extension StoreOperation {
  static let migrate = StoreOperation(rawValue: "migrate")
}
#endif
