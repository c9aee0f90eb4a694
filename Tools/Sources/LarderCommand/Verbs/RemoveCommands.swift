import ArgumentParser
import Larder
import StoreAccess

/// `larder remove`.
struct RemoveCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "remove",
    abstract: "Remove entries by key, atomically.",
    discussion: """
      Missing keys are ignored.

        larder remove json:users.json ada grace
      """)

  @OptionGroup var store: StoreArgument
  @Argument(help: ArgumentHelp("The keys to remove.", valueName: "key")) var removed: [String]
  @OptionGroup var keys: KeyOptions

  func run() async throws {
    let changes = ChangeBatch<JSONText>(try removed.map { .remove(try keys.key($0)) })
    try await StoreSession.run(store.target) { store, _ in
      try await store.present.apply(changes)
    }
  }
}

/// `larder clear`.
struct ClearCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "clear",
    abstract: "Remove all entries, or all within bounds, atomically.",
    discussion: """
      On a terminal it asks for confirmation first, except with --yes. After any answer but y or yes it removes nothing \
      and exits with 4. With --dry-run it prints the number of entries that it would remove.

        larder clear json:users.json --prefix guest: --dry-run
        larder clear json:users.json --prefix guest:
        larder clear json:users.json --yes
      """)

  @OptionGroup var store: StoreArgument
  @OptionGroup var range: RangeOptions
  @Flag(name: .customLong("dry-run"), help: "Print the number of entries that would be removed, and remove none.")
  var isDryRun = false
  @Flag(name: .customLong("yes"), help: "Do not ask for confirmation.") var isConfirmed = false

  func run() async throws {
    let (range, target) = (try range.range(), store.target)
    var mostEntries = Int.max
    guard !isDryRun else {
      return try await StoreSession.run(target, access: .readOnly) { store, output in
        try output.writeLine("\(try await store.present.count(in: range))")
      }
    }
    if !isConfirmed, Descriptor.standardInput.isTerminal {
      // The store is closed before the question, so that no other program waits for the answer.
      mostEntries = try await StoreSession.run(target, access: .readOnly) { store, _ in
        try await store.present.count(in: range)
      }
      Diagnostics.write("Remove \(EntryCount.text(mostEntries)) from \(store.url)? [y/N] ")
      let answer = readLine()
      // Without an answer, the cursor is still after the question.
      if answer == nil { Diagnostics.writeLine("") }
      guard ["y", "yes"].contains(answer?.lowercased()) else {
        throw CommandFailure(.declined, "nothing was removed", advice: "Answer y, or give --yes.")
      }
    }
    try await StoreSession.run(target) { [mostEntries] store, _ in
      if mostEntries < .max, try await store.present.count(in: range) > mostEntries {
        throw CommandFailure(.tryAgain, "entries were added before you answered; nothing was removed")
      }
      try await store.present.removeAll(in: range)
    }
  }
}
