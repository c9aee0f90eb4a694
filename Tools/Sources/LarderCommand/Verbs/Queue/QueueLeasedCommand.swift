import ArgumentParser
import Foundation
import Larder
import StoreAccess

/// `larder queue leased`.
struct QueueLeasedCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "leased",
    abstract: "Print the items that consumers have received and not acknowledged.",
    discussion: """
      Prints a line {"key":...,"attempt":...,"deadline":"...","sequence":...} for each item whose lease has not ended. An \
      item of a group has a further member "group". The value is not read: `larder get` prints it.

        larder queue leased lmdb:shop#queues --prefix jobs/
        larder queue leased queue:mail
      """)

  /// The number of items that are read at a time.
  private static let pageLength = 1000

  @OptionGroup var queue: QueueArgument
  @OptionGroup var access: AccessOption

  func run() async throws {
    let url = queue.url
    try await StoreSession.runQueue(queue.target, access: access.storeAccess) { queue in
      guard let lists = AnyDataStore(queue).inspectableQueue else {
        throw CommandFailure(.usage, "\(url) does not list its leased items")
      }
      var items: [HeldItem] = []
      var position: StoreKey?
      repeat {
        let page = try await lists.leasedItems(limit: Self.pageLength, after: position)
        items += page.entries
        position = page.next
      } while position != nil
      return items
    } print: { items, output in
      for item in items { try output.writeLine { QueueLine.append(item, to: &$0) } }
    }
  }
}
