#if SQLite
public import Larder
import LarderCBOR

extension SQLiteStore where Value: Codable {
  /// Opens a store of `Codable` values in a database, with `CBORCodec`.
  ///
  /// ```swift
  /// let database = try await SQLiteDatabase(path: "shop.sqlite")
  /// let customers = try await SQLiteStore<Customer>(in: database, name: "customers")
  /// ```
  ///
  /// - Parameters:
  ///   - database: The database that holds the store.
  ///   - name: The name of the store. Defaults to `default`.
  ///   - layout: The kind of a new table. Defaults to `SQLiteTableLayout.ordinary`.
  ///   - createsIfMissing: A Boolean value that indicates whether to create the store if it is missing. Defaults to
  ///     `true`.
  /// - Throws: The same errors as ``init(in:name:codec:layout:createsIfMissing:)``.
  public convenience init(
    in database: SQLiteDatabase, name: String = SQLiteStore.defaultName, layout: SQLiteTableLayout = .ordinary,
    createsIfMissing: Bool = true
  ) async throws {
    try await self.init(
      in: database, name: name, codec: CBORCodec(), layout: layout, createsIfMissing: createsIfMissing)
  }

  /// Opens a store of `Codable` values together with its database, with `CBORCodec`.
  ///
  /// ```swift
  /// let users = try await SQLiteStore<User>(path: "users.sqlite", durability: .buffered)
  /// ```
  ///
  /// - Parameters:
  ///   - path: The path of the database file.
  ///   - name: The name of the store. Defaults to `default`.
  ///   - layout: The kind of a new table. Defaults to `SQLiteTableLayout.ordinary`.
  ///   - durability: The durability of a write when it returns. Defaults to `Durability.File.synced`.
  ///   - access: The access of the store to its file. Defaults to `StoreAccess.readWrite`.
  ///   - createsIfMissing: A Boolean value that indicates whether to create the file or store if it is missing.
  ///     Defaults to `true`.
  ///   - busyTimeout: The time that a call waits for another process. Defaults to 5 seconds.
  /// - Throws: The same errors as
  ///   ``init(path:name:codec:layout:durability:access:createsIfMissing:busyTimeout:)``.
  public convenience init(
    path: String, name: String = SQLiteStore.defaultName, layout: SQLiteTableLayout = .ordinary,
    durability: Durability.File = .synced, access: StoreAccess = .readWrite, createsIfMissing: Bool = true,
    busyTimeout: Duration = .seconds(5)
  ) async throws {
    try await self.init(
      path: path, name: name, codec: CBORCodec(), layout: layout, durability: durability, access: access,
      createsIfMissing: createsIfMissing, busyTimeout: busyTimeout)
  }
}
#endif
