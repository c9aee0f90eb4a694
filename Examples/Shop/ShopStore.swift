import Configuration
import Foundation
import Larder
import LarderConfiguration
import LarderCoordination
import LarderMetrics
import LarderPostgres
import LarderSQLite
import LarderService
import LarderWorker
import Logging

/// The settings with which an instance starts, of the environment and of a file.
struct ShopSettings: Sendable {
  private static let defaults = """
    {"stores": {"shop": {"url": "sqlite:shop.sqlite"}}, "limits": {"orders": {"rate": 50}}}
    """

  /// The kinds of stores that the configuration can choose from.
  let stacks: Stacks

  /// The number of orders of a user in a second, unless the store has a setting for it.
  let orderRate: Int

  /// The settings of the worker that confirms orders.
  let mailWorker: LayerSettings

  /// Reads the settings.
  ///
  /// - Parameters:
  ///   - file: The path of a JSON or YAML file, or `nil`.
  ///   - variables: The environment, which comes before the file.
  init(file: String?, variables: [String: String] = ProcessInfo.processInfo.environment) throws {
    var sources: [ConfigurationSource] = [.environment(variables)]
    if let file { sources.append(try file.hasSuffix(".json") ? .json(path: file) : .yaml(path: file)) }
    sources.append(try .json(Data(Self.defaults.utf8), name: "the defaults"))
    // A store of several instances reports the changes of all of them.
    stacks = Stacks(sources: sources, stores: [SQLiteStoreProvider(), PostgresStoreProvider(reportsChanges: true)])
    let rate = LayerSetting("rate", .count(ShopLimits.rates), "the orders of a user in a second")
    orderRate = try stacks.settings([rate], of: "orders", in: "limits").count("rate") ?? 1
    mailWorker = try stacks.settings(QueueWorker.settings, of: "mail", in: "workers")
  }
}

/// The one store of the shop, and the clock that all instances share.
final class ShopStore: Sendable {
  typealias Bytes = MeteredStore<AnyDataStore<[UInt8]>>

  let settings: ShopSettings

  /// The connection to the clock of the server, or `nil` for a store of one machine.
  private let database = Locked<PostgresDatabase?>(nil)

  init(_ settings: ShopSettings) {
    self.settings = settings
  }

  /// Opens the store.
  func open() async throws -> Bytes {
    let url = try settings.stacks.url(of: "shop")
    if url.scheme == PostgresStoreProvider().scheme {
      let opened = try await PostgresLocation(url).open(access: .readWrite)
      database.withLock { $0 = opened }
    }
    do {
      return try await settings.stacks.open("shop", codec: .raw).metered(as: "shop", logger: nil)
    } catch {
      await closeClock()
      throw error
    }
  }

  /// The clock of limits, after the store was opened.
  var time: SharedClock { database.withLock { $0 }?.serverClock ?? .boot }

  /// Closes the connection to the clock.
  func closeClock() async {
    let opened = database.withLock { $0.take() }
    await opened?.close()
  }
}

/// The limits of users and clients, of which that of orders follows a setting in the store while the shop runs.
struct ShopLimits: Sendable {
  /// The possible rates.
  static let rates = 1...1_000_000

  private let bytes: ShopStore.Bytes
  private let time: SharedClock
  private let orderRate: Int
  private let settings: ConfigReader

  /// Reads the settings in the store, whose keys begin with `settings/`.
  init(_ bytes: ShopStore.Bytes, of store: ShopStore) async throws {
    func settings(in store: some ObservableStore<[UInt8]>) async throws -> ConfigReader {
      ConfigReader(
        provider: try await StoreConfigProvider(store.typed(JSONText.self, prefix: "settings/", codec: .jsonText)))
    }
    guard let observable = bytes.base.observation else {
      throw StoreError(
        .unsupported, during: .open, store: bytes.information.name, message: "the store does not report its changes")
    }
    (self.bytes, time, orderRate) = (bytes, store.time, store.settings.orderRate)
    self.settings = try await settings(in: observable)
  }

  /// Returns the limits of the orders of users, with the rate that is set now.
  func orders() throws -> RateLimiter {
    let rate = settings.int(forKey: "limits.orders.rate", default: orderRate)
    return try limiter("limits/", rate: min(max(rate, Self.rates.lowerBound), Self.rates.upperBound))
  }

  /// Returns the limits of the logins from addresses.
  func logins() throws -> RateLimiter { try limiter("logins/", rate: 100) }

  /// Removes the entries of users and addresses that have their whole limit.
  func removeIdle() async throws {
    try await orders().removeIdle()
    try await logins().removeIdle()
  }

  private func limiter(_ prefix: StoreKey, rate: Int) throws -> RateLimiter {
    try RateLimiter(bytes, prefix: prefix, limit: RateLimit(rate, per: .seconds(1), burst: rate), time: time)
  }
}

extension StoreService where Store == ShopStore.Bytes {
  /// Creates the service of the shop's store, which also removes old requests and limits.
  convenience init(_ store: ShopStore, logger: Logger) {
    self.init(
      checkEvery: .seconds(5),
      tasks: [
        StoreTask("requests", every: .seconds(3600), making: { try Shop.requests(in: $0) }) { try await $0.purge() },
        StoreTask("limits", every: .seconds(3600), making: { try await ShopLimits($0, of: store) }) {
          try await $0.removeIdle()
        },
      ],
      onProblem: { name, error in logger.error("\(name): \(error)") }, open: store.open)
  }
}
