import ArgumentParser
import Larder

/// `larder clear`.
struct ClearCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "clear",
    abstract: "Remove every entry, or every one within bounds, at once.",
    discussion: """
      On a terminal it asks first, unless --yes is given. Any answer but y or yes leaves every entry, and makes it end \
      with 4. With --dry-run it prints how many entries it would remove.

        larder clear json:users.json --prefix guest: --dry-run
        larder clear json:users.json --prefix guest:
        larder clear json:users.json --yes
      """)

  @OptionGroup var store: StoreArgument
  @OptionGroup var range: RangeOptions
  @Flag(name: .customLong("dry-run"), help: "Print how many entries would be removed, and leave them.")
  var isDryRun = false
  @Flag(name: .customLong("yes"), help: "Do not ask.") var isConfirmed = false

  func run() async throws {
    let (range, target) = (try range.range(), store.target)
    var mostEntries = Int.max
    guard !isDryRun else {
      return try await StoreSession.run(store.target, createsIfMissing: false, access: .readOnly) { store, output in
        try output.writeLine("\(try await store.count(in: range))")
      }
    }
    if !isConfirmed, Descriptor.standardInput.isTerminal {
      // The store is closed before it asks: nothing else waits for the answer.
      mostEntries = try await StoreSession.run(target, createsIfMissing: false, access: .readOnly) { store, _ in
        try await store.count(in: range)
      }
      Diagnostics.write("Remove \(EntryCount.text(mostEntries)) of \(store.url)? [y/N] ")
      let answer = readLine()
      // Without an answer the cursor is still behind the question.
      if answer == nil { Diagnostics.writeLine("") }
      guard ["y", "yes"].contains(answer?.lowercased()) else {
        throw CommandFailure(.declined, "nothing was removed", advice: "Answer y, or give --yes.")
      }
    }
    try await StoreSession.run(target, createsIfMissing: false) { [mostEntries] store, _ in
      if mostEntries < .max, try await store.count(in: range) > mostEntries {
        throw CommandFailure(.tryAgain, "entries came while it asked; nothing was removed")
      }
      try await store.removeAll(in: range)
    }
  }
}
