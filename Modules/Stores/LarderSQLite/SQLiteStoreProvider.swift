#if SQLite
public import Larder
public import LarderFiles
import LarderSQLiteFormat

/// A provider that opens ``SQLiteStore``s for `StoreRegistry`, for URLs such as `sqlite:users.sqlite` and
/// `sqlite:shop.sqlite#orders`.
///
/// ```swift
/// let registry = StoreRegistry(providers: [SQLiteStoreProvider()])
/// let users = try await registry.open("sqlite:shop.sqlite#users", codec: .json(User.self))
/// ```
public struct SQLiteStoreProvider: StoreProvider {
  private let layout: SQLiteTableLayout
  private let busyTimeout: Duration

  /// Creates the provider.
  ///
  /// - Parameters:
  ///   - layout: The kind of new tables. Defaults to `SQLiteTableLayout.ordinary`.
  ///   - busyTimeout: The time that a call waits while another process has the lock that it needs. Defaults to 5 seconds.
  public init(layout: SQLiteTableLayout = .ordinary, busyTimeout: Duration = .seconds(5)) {
    self.layout = layout
    self.busyTimeout = busyTimeout
  }

  /// The scheme `sqlite`.
  public var scheme: String { "sqlite" }

  /// A one-line description of the stores.
  public var summary: String { "a table in an SQLite database, PATH#NAME, by default the name \"default\"" }

  /// The default codec of new stores, `cbor`.
  public var codecName: String { UntypedTable.defaultCodecName }

  /// Opens the store that a URL names: the path of the database and, after the last `#`, the name of the store.
  ///
  /// If the path contains `#`, you must append the name, as in `sqlite:build#7#default`. A location that could be such
  /// a path is refused, so no other database is opened by mistake.
  ///
  /// - Throws: `StoreError`: `invalidArgument` if the path or the name is empty, or if the last `#` could be part of
  ///   the path; the errors of opening an ``SQLiteStore``.
  public func open(
    _ url: StoreURL, options: StoreOptions, newCodecName: String?
  ) async throws -> some UntypedStore {
    let location = try SQLiteStoreProvider.location(of: url)
    // Before a database is created for it.
    try UntypedTable.check(location.name, in: location.path)
    let database = try await SQLiteDatabase(
      path: location.path, durability: options.durability, access: options.access,
      createsIfMissing: options.createsIfMissing, busyTimeout: busyTimeout)
    return try await UntypedTable(
      in: database, isOwned: true, name: location.name, layout: layout, createsIfMissing: options.createsIfMissing,
      newCodecName: newCodecName)
  }

  /// Returns the path of the database that a URL names, alone or with a store in it.
  ///
  /// - Parameter url: The URL, such as `sqlite:shop.sqlite` or `sqlite:shop.sqlite#orders`.
  /// - Returns: The path, such as `shop.sqlite`.
  /// - Throws: `StoreError`: `invalidArgument` if the path or the name is empty, or if the last `#` could be part of
  ///   the path.
  public func databasePath(of url: StoreURL) throws -> String {
    try SQLiteStoreProvider.location(of: url).path
  }

  /// Returns the files of the database that a URL names, whether or not they exist.
  ///
  /// - Parameter url: The URL, such as `sqlite:shop.sqlite` or `sqlite:shop.sqlite#orders`.
  /// - Throws: The errors of ``databasePath(of:)``.
  public func files(of url: StoreURL) throws -> StoreFileSet { DatabaseFiles.all(at: try databasePath(of: url)) }

  private static func location(of url: StoreURL) throws -> StoreLocation {
    try StoreLocation(
      of: url, defaultName: SQLiteStore<Never>.defaultName, whereStoresExist: StoreLocation.exists)
  }
}
#endif
