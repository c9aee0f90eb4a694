#if LMDB
public import Larder
public import LarderFiles

/// A provider that opens ``LMDBStore``s for `StoreRegistry`, for URLs such as `lmdb:users` and `lmdb:shop#orders`.
public struct LMDBStoreProvider: StoreProvider {
  private let busyTimeout: Duration?

  /// Creates the provider.
  ///
  /// - Parameter busyTimeout: The time that a write or the opening of a store waits for other writers; see
  ///   ``LMDBEnvironment/init(path:durability:access:createsIfMissing:busyTimeout:)``. Defaults to `nil`, for no limit.
  public init(busyTimeout: Duration? = nil) {
    self.busyTimeout = busyTimeout
  }

  /// The scheme `lmdb`.
  public var scheme: String { "lmdb" }

  /// A one-line description of the stores.
  public var summary: String { "a named database in an LMDB environment, PATH#NAME, by default the name \"default\"" }

  /// The default codec of new stores, `cbor`.
  public var codecName: String { UntypedDatabase.defaultCodecName }

  /// Opens the store that a URL names: the path of the environment and, after the last `#`, the name of the store.
  ///
  /// If the path contains `#`, you must append the name, as in `lmdb:build#7#default`. A location that could be such a
  /// path is refused, so that no other environment is opened by mistake.
  ///
  /// - Throws: `StoreError`: `invalidArgument` if the path or the name is empty, or if the last `#` could be part of
  ///   the path, because a file or folder exists at the whole location, or because the name contains a slash and either
  ///   there is no environment at the path or the part of the location before its last slash exists; the errors of
  ///   opening an ``LMDBStore``.
  public func open(
    _ url: StoreURL, options: StoreOptions, newCodecName: String?
  ) async throws -> some UntypedStore {
    let location = try LMDBStoreProvider.location(of: url)
    let environment = try await LMDBEnvironment(
      path: location.path, durability: options.durability, access: options.access,
      createsIfMissing: options.createsIfMissing, busyTimeout: busyTimeout)
    return try await UntypedDatabase(
      in: environment, isOwned: true, name: location.name, createsIfMissing: options.createsIfMissing,
      newCodecName: newCodecName)
  }

  /// Returns the path of the environment that a URL names, alone or with a store in it.
  ///
  /// - Parameter url: The URL, such as `lmdb:shop` or `lmdb:shop#orders`.
  /// - Returns: The path, such as `shop`.
  /// - Throws: `StoreError`: `invalidArgument` if the path or the name is empty, or if the last `#` could be part of
  ///   the path.
  public func environmentPath(of url: StoreURL) throws -> String {
    try LMDBStoreProvider.location(of: url).path
  }

  /// Returns the files of the environment that a URL names, which need not exist.
  ///
  /// - Parameter url: The URL, such as `lmdb:shop` or `lmdb:shop#orders`.
  /// - Returns: The folder of the environment, or the data file and the lock file if there is a file at the path.
  /// - Throws: The errors of ``environmentPath(of:)``; `FileError` if the path cannot be examined.
  public func files(of url: StoreURL) throws -> StoreFileSet {
    let path = try environmentPath(of: url)
    return EnvironmentFiles.all(
      at: path, try POSIXFileSystem().attributes(at: path)?.kind == .file ? .singleFile : .folder)
  }

  private static func location(of url: StoreURL) throws -> StoreLocation {
    try StoreLocation(of: url, defaultName: LMDBStore<Never>.defaultName) { path in
      StoreLocation.exists(FilePaths.join(path, "data.mdb")) || StoreLocation.exists(path + "-lock")
    }
  }
}
#endif
