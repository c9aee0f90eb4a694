import ArgumentParser
import Larder

/// The keys that a verb is about, which lie within all of the bounds that are given.
struct RangeOptions: ParsableArguments {
  @Option(help: "Only keys that begin with this.") var prefix: String?
  @Option(help: ArgumentHelp("Only this key and those after it.", valueName: "key")) var from: String?
  @Option(help: ArgumentHelp("Only keys before this one.", valueName: "key")) var to: String?
  @OptionGroup var keys: KeyOptions

  func validate() throws {
    for (name, bound) in [("--prefix", prefix), ("--from", from), ("--to", to)] where bound == "" {
      // An unset variable of a shell gives this, and means all keys least of all.
      throw ValidationError("\(name) is empty; leave it out for no such bound")
    }
    _ = try range()
  }

  /// The keys.
  ///
  /// - Throws: `ValidationError` where a bound is not hexadecimal but should be.
  func range() throws -> KeyRange {
    let prefixed = try prefix.map { KeyRange.prefix(try keys.bound($0)) } ?? .all
    let lowerBound = try from.map { max(prefixed.lowerBound, try keys.bound($0)) } ?? prefixed.lowerBound
    let upperBounds = try [prefixed.upperBound, to.map { try keys.bound($0) }].compactMap(\.self)
    return KeyRange(from: lowerBound, upTo: upperBounds.min())
  }
}
