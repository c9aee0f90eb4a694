#if LMDB
public import Larder
public import LarderFiles

/// A provider that opens ``LMDBStore``s for `StoreRegistry`, for URLs such as `lmdb:users` and `lmdb:shop#orders`.
///
/// ```swift
/// let registry = StoreRegistry(providers: [LMDBStoreProvider()])
/// let orders = try await registry.open("lmdb:shop#orders", codec: .cbor(Order.self))
/// ```
public struct LMDBStoreProvider: StoreProvider {
  private let busyTimeout: Duration?
  private let examinesPages: Bool
  private let findsPossiblyOlder: Bool

  /// Creates the provider.
  ///
  /// - Parameters:
  ///   - busyTimeout: The time that a write or the opening of a store waits for other writers; see
  ///     ``LMDBEnvironment/init(path:durability:access:createsIfMissing:busyTimeout:)``. Defaults to `nil`, for no limit.
  ///   - examinesPages: A Boolean value that indicates whether existing stores are read page by page, without LMDB's
  ///     memory map. Such a store can only be read. It may be damaged, or have been written by LMDB 0.9 or 1.0,
  ///     whichever the program runs with. A read that finds damage throws `corrupted` with an `UnreadableKeysError`,
  ///     and all other entries can be read. `verify` has one finding for each damaged page. Defaults to `false`.
  ///   - findsPossiblyOlder: A Boolean value that indicates whether a store that is read page by page also has entries,
  ///     in place of lost ones, that may be older, removed, or of another named database. If the list of the named
  ///     databases is damaged, the store has the entries before the latest transaction. Only for salvaging: such a
  ///     store can only be read. Defaults to `false`.
  public init(busyTimeout: Duration? = nil, examinesPages: Bool = false, findsPossiblyOlder: Bool = false) {
    self.busyTimeout = busyTimeout
    self.examinesPages = examinesPages || findsPossiblyOlder
    self.findsPossiblyOlder = findsPossiblyOlder
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
  /// path is refused, so no other environment is opened by mistake.
  ///
  /// - Throws: `StoreError`: `invalidArgument` if the path or the name is empty, or if the last `#` could be part of
  ///   the path, because a file or folder exists at the whole location, or because the name contains a slash and either
  ///   there is no environment at the path or the part of the location before its last slash exists; the errors of
  ///   opening an ``LMDBStore``.
  public func open(
    _ url: StoreURL, options: StoreOptions, newCodecName: String?
  ) async throws -> some UntypedStore {
    let location = try LMDBStoreProvider.location(of: url)
    guard !examinesPages else {
      let configuration = EnvironmentConfiguration(
        path: location.path, access: options.access, createsIfMissing: false, busyTimeout: busyTimeout)
      let environment = try await ExaminedEnvironment(configuration, findsPossiblyOlder: findsPossiblyOlder)
      do {
        return OpenedDatabase.examined(
          try await ExaminedDatabase(in: environment, name: location.name, newCodecName: newCodecName))
      } catch {
        try await environment.close()
        throw error
      }
    }
    let environment = try await LMDBEnvironment(
      path: location.path, durability: options.durability, access: options.access,
      createsIfMissing: options.createsIfMissing, busyTimeout: busyTimeout)
    return OpenedDatabase.ordinary(
      try await UntypedDatabase(
        in: environment, isOwned: true, name: location.name, createsIfMissing: options.createsIfMissing,
        newCodecName: newCodecName))
  }

  /// A database that is open in one of two ways.
  private enum OpenedDatabase: UntypedStore {
    case ordinary(UntypedDatabase)
    case examined(ExaminedDatabase)

    var codecName: String {
      switch self {
      case .ordinary(let database): database.codecName
      case .examined(let database): database.codecName
      }
    }

    func typed<Value: Sendable>(codec: some Codec<Value>) async throws -> AnyDataStore<Value> {
      switch self {
      case .ordinary(let database): try await database.typed(codec: codec)
      case .examined(let database): try await database.typed(codec: codec)
      }
    }
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

  /// Returns the files of the environment that a URL names, whether or not they exist.
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
