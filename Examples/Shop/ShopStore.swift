import Foundation
import Larder
import LarderCoordination
import LarderMetrics
import LarderPostgres
import LarderSQLite
import LarderService
import Logging

/// The one store of the shop, by its URL.
struct ShopStore {
  typealias Bytes = MeteredStore<AnyDataStore<[UInt8]>>

  /// Opens the store.
  let open: @Sendable () async throws -> Bytes

  /// The clock of limits that all instances share.
  let time: SharedClock

  /// The database, which is closed after the store.
  let database: PostgresDatabase?

  init(_ text: String) async throws {
    let url = try StoreURL(text)
    switch url.scheme {
    case "sqlite":
      (time, database) = (.boot, nil)
      open = {
        AnyDataStore(try await SQLiteStore<[UInt8]>(path: url.location, codec: .raw)).metered(as: "shop", logger: nil)
      }
    case "postgres":
      let database = try await PostgresDatabase(url.location)
      (time, self.database) = (database.serverClock, database)
      open = {
        AnyDataStore(try await PostgresStore<[UInt8]>(in: database, name: "shop", codec: .raw))
          .metered(as: "shop", logger: nil)
      }
    default:
      throw StoreError(
        .unsupported, during: .open, store: text,
        message: "the store must be sqlite:PATH or postgres:CONNECTION, not \(url.scheme)")
    }
  }
}

extension StoreService where Store == ShopStore.Bytes {
  /// Creates the service of the shop's store, which also removes old requests and limits.
  convenience init(_ store: ShopStore, logger: Logger) {
    self.init(
      checkEvery: .seconds(5),
      tasks: [
        StoreTask("purge", every: .seconds(3600)) { bytes in
          try await IdempotencyKeys(bytes, prefix: "requests/", codec: .json(Order.self)).purge()
        }
      ],
      onProblem: { name, error in logger.error("\(name): \(error)") }, open: store.open)
  }
}
