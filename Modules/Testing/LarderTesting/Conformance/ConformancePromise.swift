/// A promise that every store and decorator keeps, as listed by `DataStore`.
public enum ConformancePromise: String, Sendable, Hashable, CaseIterable {
  case keys = "Keys are 1 to 511 bytes, compared byte by byte. Any other key is refused before anything changes."
  case values = "Values round-trip exactly. A stored nil is not a missing key. Mutating a copy never changes the store."
  case missing = "A missing key reads as nil, and removing it succeeds. An error is never reported as missing."
  case batches = "A batch is atomic for readers, crashes and errors. Its changes take effect in sequence."
  case updates = "An update is atomic against every other writer. If its body throws, nothing else happens."
  case scans = "A scan is ordered and one consistent snapshot. In a walk over pages, each lasting entry appears once."
  case durability = "When a write returns, its effect outlives the store, as far as the store's durability states."
  case isolation =
    "An entry that cannot be decoded throws an error with its key. It is kept, and so is every other entry."
  case lifecycle = "Closing waits for running operations and may be repeated. Every later operation throws `closed`."
  case cancellation =
    "Cancellation before a write starts changes nothing. Closing and synchronizing ignore cancellation."
  case errors = "An error states the operation, the store, and whether anything changed. Its description shows no key."
  case observation =
    "Every commit is reported after it took effect. The last state that an observer sees is that of the store."
  case deliveries =
    "An item is delivered until it is acknowledged or dead, to one consumer at a time, in order, and never afterward."
  case badInput = "Bad input is refused with a clear error, and nothing is lost."
}
