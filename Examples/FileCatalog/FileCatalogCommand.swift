import ArgumentParser
import Foundation
import Larder
import LarderJSON
import LarderLMDB

@main
struct FileCatalogCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "FileCatalog",
    abstract: "Keep a catalogue of the files below a folder in a Larder store, and show what is in it.",
    discussion: """
      The first run fills the catalogue; each later one writes only what has changed since. Nothing in the folder is \
      changed, and symbolic links are not followed.

      The store stands behind group commit, a cache and expiry, with metrics on either side, whose reports are compared at \
      the end.
      """)

  @Argument(help: "The folder to catalogue; a large one that every machine with Swift has, unless given.")
  var folder: String?

  @Option(
    help:
      "The store, like lmdb:catalog or json:catalog.json; an LMDB store for each folder, in your folder for caches, unless given."
  )
  var store: String?

  @Option(help: "What the paths of the page that is shown begin with; the fullest folder, unless given.")
  var prefix: String?

  func run() async throws {
    guard let root = folder ?? Defaults.folder() else {
      throw ValidationError("There is no large folder here that could serve as an example; please name one.")
    }
    let path = URL(filePath: root).standardizedFileURL.path
    let stack = CatalogStack(
      registry: StoreRegistry(providers: [MemoryStoreProvider(), JSONFileStoreProvider(), LMDBStoreProvider()]))
    let presentation = Presentation(folder: path, stack: stack, storeURL: store, prefix: prefix.map { StoreKey($0) })
    try await presentation.run()
  }
}
