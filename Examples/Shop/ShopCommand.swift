import ArgumentParser
import Foundation
import Hummingbird
import LarderHTTPClient
import LarderPostgres
import LarderService
import LarderWorker
import Logging
import UnixSignals

@main
struct ShopCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "Shop", abstract: "A shop whose sessions, orders, outbox, limits and cache are one store.",
    discussion: """
      The store is sqlite:PATH, or postgres:CONNECTION for several instances, where the connection is that of libpq, such as \
      "host=/run/postgresql dbname=shop".
      """)

  @Option(help: "The store.") var store = "sqlite:shop.sqlite"
  @Option(help: "The port, or 0 for a free one, which is printed.") var port = 8080
  @Option(help: "The server of the products. Defaults to the shop itself.") var upstream: String?
  @Option(help: "The number of orders of a user in a second.") var limit = 50

  func run() async throws {
    var logger = Logger(label: "Shop")
    logger.logLevel = .warning
    let opened = try await ShopStore(store)
    let (service, hostName) = (StoreService(opened, logger: logger), "127.0.0.1")
    let shop = try await Shop(service.open(), time: opened.time, ordersPerSecond: limit)
    let worker = shop.makeWorker()
    let address = ServerAddress(upstream)
    let routes = ShopRoutes(shop: shop, upstream: address, health: { service.health() }, worker: worker)
    // The server ends first, then the worker and the driver, and then the store is closed.
    let application = Application(
      router: routes.makeRouter(), configuration: .init(address: .hostname(hostName, port: port)),
      services: [service, shop.persist, QueueWorkerService(worker)],
      onServerRunning: { channel in
        let port = channel.localAddress?.port ?? 0
        address.serve(at: "http://\(hostName):\(port)/upstream")
        say("listening on \(hostName):\(port)")
      }, logger: logger)
    try await application.runService()
    try await shop.http.shutdown()
    await opened.database?.close()
    say("closed: \(service.health().phase == .closed)")
  }
}

/// Prints a line without delay, also into a pipe.
func say(_ line: String) {
  FileHandle.standardOutput.write(Data((line + "\n").utf8))
}
