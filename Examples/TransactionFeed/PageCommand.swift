import ArgumentParser
import Larder
import LarderCache

struct PageCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "page", abstract: "Print a page of an account, and the cursor of the next page.")

  @Option(help: "The folder of the store.")
  var store: String

  @Option(help: "The number of the account.")
  var account = 1

  @Option(help: "The number of transactions on the page.")
  var size = 50

  @Option(help: "A cursor that was printed. Defaults to the newest transactions.", transform: PageCursor.init)
  var after: PageCursor?

  func run() async throws {
    let feed = Feed(store: try await FeedStack.open(path: store, createsIfMissing: false))
    let page = try await feed.pages(ofAccount: account, size: size)
      .page(from: after.map { .after($0) } ?? .beginning)
    print(page.table)
    if let next = page.next { print("next: \(next.text)") }
    try await feed.store.close()
  }
}
