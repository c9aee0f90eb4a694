import ArgumentParser
import Foundation
import Larder
import LarderJSON
import LarderLMDB

@main
struct FileCatalogCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "FileCatalog",
    abstract: "Keep a catalog of the files below a folder in a Larder store, and show its content.",
    discussion: """
      The first run fills the catalog. Later runs write only the differences. The folder is never changed, and \
      symbolic links are not followed.

      The store is decorated with group commit, a cache and expiry, and with metrics on both sides, whose reports are \
      compared at the end.
      """)

  @Argument(help: "The folder to catalog. Defaults to a large folder that every machine with Swift has.")
  var folder: String?

  @Option(
    help:
      "The store, such as lmdb:catalog or json:catalog.json. Defaults to an LMDB store in your cache folder."
  )
  var store: String?

  @Option(help: "The prefix of the paths on the printed page. Defaults to the folder with the most entries.")
  var prefix: String?

  func run() async throws {
    guard let root = folder ?? Defaults.folder() else {
      throw ValidationError("no large example folder was found; pass a folder")
    }
    let path = URL(filePath: root).standardizedFileURL.path
    let stack = CatalogStack(
      registry: StoreRegistry(providers: [MemoryStoreProvider(), JSONFileStoreProvider(), LMDBStoreProvider()]))
    let presentation = Presentation(folder: path, stack: stack, storeURL: store, prefix: prefix.map { StoreKey($0) })
    try await presentation.run()
  }
}
