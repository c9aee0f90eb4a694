import ArgumentParser
import Foundation
import Larder
import LarderCrypto
// snippet.using-indexes
import LarderIndexes
import LarderLMDB
// snippet.end

@main
struct NotesCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "Notes", abstract: "Keep notes with tags and folders in a Larder store.",
    subcommands: [
      AddCommand.self, ListCommand.self, MoveCommand.self, FolderCommand.self, WatchCommand.self, VerifyCommand.self,
    ])
}

/// The options of all commands.
struct NotesOptions: ParsableArguments {
  @Option(help: "The folder of the store, which is created if it is missing.")
  var store = "notes.lmdb"

  @Option(help: "A file with the keys that encrypt the notes. A new store also needs --create-keys once.")
  var keys: String?

  @Flag(help: "Create the file of the keys.") var createKeys = false

  /// Opens the notes, passes them to a closure, and closes them.
  func withNotes(_ body: (NoteBook<LMDBStore<[UInt8]>>) async throws -> Void) async throws {
    var ring: KeyRing?
    if let keys { ring = try await KeyRing.open(in: .file(keys), createsIfMissing: createKeys) }
    let bytes = try await LMDBStore<[UInt8]>(path: store, codec: .raw)
    do {
      try await body(NoteBook(bytes, keys: ring))
    } catch {
      try await bytes.close()
      throw error
    }
    try await bytes.close()
  }
}

struct AddCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(commandName: "add", abstract: "Add a note to the inbox.")

  @OptionGroup var options: NotesOptions
  @Argument(help: "The title.") var title: String
  @Option(name: .customLong("tag"), help: "A tag. You can repeat this option.") var tags: [String] = []

  func run() async throws {
    try await options.withNotes { book in
      print(try await book.add(title, tags: tags, at: Int64(Date.now.timeIntervalSince1970 * 1000)))
    }
  }
}

struct ListCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(commandName: "list", abstract: "Print a page of notes, newest first.")

  @OptionGroup var options: NotesOptions
  @Option(help: "Only notes with this tag.") var tag: String?
  @Option(help: "Only notes in this folder.") var folder: String?
  @Option(help: "The maximum number of notes.") var size = 20
  @Option(help: "The cursor that the page before has printed.") var after: String?

  func run() async throws {
    try await options.withNotes { book in
      let page = try await book.page(tag: tag, folder: folder, size: size, after: after.map { try PageCursor($0) })
      show(page.entries)
      if let next = page.next { print("more: --after \(next.text)") }
    }
  }
}

struct MoveCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "move", abstract: "Move notes to a folder, all or none of them.")

  @OptionGroup var options: NotesOptions
  @Argument(help: "The folder.") var folder: String
  @Argument(help: "The notes, as `add` and `list` print them.") var notes: [String]

  func run() async throws {
    try await options.withNotes { book in try await book.move(notes.map { StoreKey($0) }, to: folder) }
  }
}

struct FolderCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(commandName: "folder", abstract: "Create or change a folder.")

  @OptionGroup var options: NotesOptions
  @Argument(help: "The name.") var name: String
  @Option(help: "The color.") var color = "gray"

  func run() async throws {
    try await options.withNotes { book in try await book.folders.setValue(Folder(color: color), forKey: StoreKey(name))
    }
  }
}

struct WatchCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "watch", abstract: "Print the newest notes now, and whenever another program changes them.")

  @OptionGroup var options: NotesOptions
  @Option(help: "The maximum number of notes.") var size = 10

  func run() async throws {
    try await options.withNotes { book in
      try await book.watch(size: size) { entries in
        show(entries)
        print("---")
      }
    }
  }
}

struct VerifyCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "verify", abstract: "Compare the indexes with the notes, and rewrite notes of older versions.")

  @OptionGroup var options: NotesOptions
  @Flag(help: "Rebuild the indexes from scratch first.") var rebuild = false

  func run() async throws {
    try await options.withNotes { book in
      if rebuild { try await book.notes.rebuildIndexes(fromScratch: true) }
      let migrated = try await book.notes.migrateAll()
      let report = try await book.notes.verifyIndexes()
      for finding in report.findings { print(finding.place, finding.message) }
      print("\(migrated.examinedCount) notes, \(report.findings.count) differences")
      if !report.findings.isEmpty { throw ExitCode.failure }
    }
  }
}

/// Prints notes, one on each line.
private func show(_ entries: [StoreEntry<Note>]) {
  for entry in entries {
    let tags = entry.value.tags.map { " #\($0)" }.joined()
    print("\(entry.key.string ?? "")  \(entry.value.folder): \(entry.value.title)\(tags)")
  }
}
