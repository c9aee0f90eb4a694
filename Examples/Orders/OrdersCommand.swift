import ArgumentParser
import Foundation
import Larder
import LarderQueue

@main
struct OrdersCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "Orders", abstract: "Take orders, and send an event for each of them once.",
    discussion: "The database is shop.sqlite in the folder, and the queue is in the folder queue.",
    subcommands: [StockCommand.self, PlaceCommand.self, SendCommand.self])
}

/// The options of all commands.
struct OrdersOptions: ParsableArguments {
  @Option(help: "The folder of the shop, which is created if it is missing.")
  var folder = "shop"

  /// Opens the orders, passes them to a closure, and closes them.
  func withOrders(_ body: (OrderBook) async throws -> Void) async throws {
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    let book = try await OrderBook(path: "\(folder)/shop.sqlite")
    do {
      try await body(book)
    } catch {
      try await book.close()
      throw error
    }
    try await book.close()
  }
}

struct StockCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "stock", abstract: "Add pieces of an item, or print what is in stock.")

  @OptionGroup var options: OrdersOptions
  @Argument(help: "The item.") var item: String?
  @Argument(help: "The number of pieces to add.") var count: Int?

  func run() async throws {
    try await options.withOrders { book in
      if let item, let count { try await book.stock.update(StoreKey(item)) { $0 = ($0 ?? 0) + count } }
      for try await entry in book.stock.entries() { print(entry.key, entry.value) }
    }
  }
}

struct PlaceCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(commandName: "place", abstract: "Place an order.")

  @OptionGroup var options: OrdersOptions
  @Argument(help: "The item.") var item: String
  @Argument(help: "The number of pieces.") var count = 1

  func run() async throws {
    try await options.withOrders { book in print("order", try await book.place(item, count: count)) }
  }
}

struct SendCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "send", abstract: "Print the event of each order that was not sent yet.")

  @OptionGroup var options: OrdersOptions

  func run() async throws {
    try await options.withOrders { book in
      let queue = try await QueueStore<OrderPlaced>(path: "\(options.folder)/queue")
      do {
        _ = try await book.forward(to: queue)
        for delivery in try await queue.receive(max: 100, lease: .seconds(30)) {
          let line = "order \(delivery.value.order): \(delivery.value.count) of \(delivery.value.item)\n"
          // Without a buffer, because an acknowledged event must have been sent.
          try FileHandle.standardOutput.write(contentsOf: Data(line.utf8))
          try await queue.acknowledge(delivery.receipt)
        }
      } catch {
        try await queue.close()
        throw error
      }
      try await queue.close()
    }
  }
}
