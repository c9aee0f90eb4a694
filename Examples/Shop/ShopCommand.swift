import ArgumentParser
import Foundation
import Hummingbird
import LarderHTTPClient
import LarderService
import LarderWorker
import Logging
import ServiceLifecycle
import UnixSignals

@main
struct ShopCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "Shop", abstract: "A shop whose sessions, orders, outbox, limits and cache are one store.",
    discussion: """
      The settings are variables such as STORES_SHOP_URL, or keys of a file:
        stores.shop.url       the store: sqlite:PATH, or postgres:CONNECTION#NAME for several instances
        limits.orders.rate    the orders of a user in a second; an entry settings/limits.orders.rate of the store replaces it
        workers.mail.lease    the lease of an order that is confirmed, such as 10s
      """)

  @Option(help: "The path of a JSON or YAML file with settings.") var config: String?
  @Option(help: "The port, or 0 for a free one, which is printed.") var port = 8080
  @Option(help: "The server of the products. Defaults to the shop itself.") var upstream: String?

  func run() async throws {
    var logger = Logger(label: "Shop")
    logger.logLevel = .warning
    let store = ShopStore(try ShopSettings(file: config))
    let service = StoreService(store, logger: logger)
    let outcome: Result<Void, any Error>
    do {
      outcome = .success(try await serve(store, service, logger))
    } catch {
      outcome = .failure(error)
    }
    // Also after an error between the opening of the store and the start of the services.
    await store.closeClock()
    try await service.close()
    try outcome.get()
    say("closed: \(service.health().phase == .closed)")
  }

  private func serve(_ store: ShopStore, _ service: StoreService<ShopStore.Bytes>, _ logger: Logger) async throws {
    let shop = try await Shop(service.open(), of: store)
    let (worker, address, hostName) = (shop.makeWorker(), ServerAddress(upstream), "127.0.0.1")
    let routes = ShopRoutes(shop: shop, upstream: address, health: { service.health() }, worker: worker)
    // The server ends first, then these from the last to the first, so that the store is closed after all others.
    let services = [
      AnnouncedService(name: "store", service: service),
      AnnouncedService(name: "products", service: ProductsClient(http: shop.http)),
      AnnouncedService(name: "sessions", service: shop.persist),
      AnnouncedService(name: "mails", service: QueueWorkerService(worker)),
    ]
    let application = Application(
      router: routes.makeRouter(), configuration: .init(address: .hostname(hostName, port: port)),
      services: services,
      onServerRunning: { channel in
        let port = channel.localAddress?.port ?? 0
        address.serve(at: "http://\(hostName):\(port)/upstream")
        say("listening on \(hostName):\(port)")
      }, logger: logger)
    try await application.runService()
  }
}

/// The client of the products, which is shut down after the server.
struct ProductsClient: Service {
  let http: CachedHTTPClient

  func run() async throws {
    do {
      try await gracefulShutdown()
    } catch is CancellationError {
      // Another service has failed. The client is shut down nevertheless.
    }
    try await http.shutdown()
  }
}

/// A service that prints that it has ended.
struct AnnouncedService: Service {
  let name: String
  let service: any Service

  func run() async throws {
    try await service.run()
    say("ended: \(name)")
  }
}

/// Prints a line without delay, also into a pipe.
func say(_ line: String) {
  FileHandle.standardOutput.write(Data((line + "\n").utf8))
}
