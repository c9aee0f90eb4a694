import ArgumentParser
import Larder
import StoreAccess

/// `larder sample`.
struct SampleCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "sample",
    abstract: "Print some entries, chosen at random.",
    discussion: """
      Prints a line for each entry, as list does, in the order of the keys. Every entry within the bounds is chosen with the \
      same probability. All keys are read once, and only the values of the chosen ones.

        larder sample json:users.json
        larder sample lmdb:events --prefix 2026-11- --limit 100
      """)

  @OptionGroup var store: StoreArgument
  @OptionGroup var access: AccessOption
  @OptionGroup var range: RangeOptions
  @Option(help: "The maximum number of entries to print.") var limit = 10

  func validate() throws {
    guard (1...1_000_000).contains(limit) else { throw ValidationError("--limit must be from 1 to 1000000") }
  }

  func run() async throws {
    let range = try range.range()
    try await StoreSession.run(store.target, access: access.storeAccess) { store, output in
      var sample = RandomSample<StoreKey>(limit: limit)
      var generator = SystemRandomNumberGenerator()
      for try await key in store.present.keys(in: range) { sample.add(key, using: &generator) }
      for key in sample.elements.sorted() {
        // The entry may have been removed by another program since its key was read.
        guard let value = try await store.peekValue(forKey: key) else { continue }
        try output.writeLine { EntryLine.append(key: key, value: value, to: &$0) }
      }
    }
  }
}

/// A random choice among elements whose number is not known in advance.
///
/// This is reservoir sampling, algorithm R (Vitter, *Random Sampling with a Reservoir*, 1985).
struct RandomSample<Element> {
  private let limit: Int
  private var count = 0

  /// The chosen elements, in no particular order.
  private(set) var elements: [Element] = []

  /// Creates an empty sample.
  ///
  /// - Parameter limit: The maximum number of chosen elements, at least 1.
  init(limit: Int) {
    self.limit = limit
  }

  /// Adds an element, which is chosen as probably as each earlier one.
  mutating func add(_ element: Element, using generator: inout some RandomNumberGenerator) {
    count += 1
    if elements.count < limit {
      elements.append(element)
    } else {
      let place = Int.random(in: 0..<count, using: &generator)
      if place < limit { elements[place] = element }
    }
  }
}
