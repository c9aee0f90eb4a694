#if Compression
public import Larder

/// The dictionaries of a store: the current one, with which values are compressed, and the older ones, with which others
/// were.
///
/// A compressed value names its dictionary, so after another is added the old values stay readable, and are compressed
/// with the new one when they are written next.
public struct CompressionDictionaries: Sendable, Hashable {
  /// The dictionaries, oldest first.
  public private(set) var all: [CompressionDictionary] = []

  /// Makes an empty set: values are compressed without a dictionary.
  public init() {}

  /// Makes a set of one dictionary, or of none.
  init(only dictionary: CompressionDictionary?) {
    all = dictionary.map { [$0] } ?? []
  }

  /// Makes a set.
  ///
  /// - Parameter dictionaries: The dictionaries, oldest first; of one that is there twice the later place counts.
  /// - Throws: As ``add(_:)``.
  public init(_ dictionaries: some Sequence<CompressionDictionary>) throws(StoreError) {
    for dictionary in dictionaries { try add(dictionary) }
  }

  /// The dictionary that values are compressed with: the one that was added last.
  public var current: CompressionDictionary? { all.last }

  /// The dictionary of an identifier.
  public subscript(id: CompressionDictionary.ID) -> CompressionDictionary? {
    // Most values have the current one.
    if let current, current.id == id { return current }
    return all.last { $0.id == id }
  }

  /// Adds a dictionary and makes it the current one; one that is there already becomes the current one.
  ///
  /// - Parameter dictionary: The dictionary.
  /// - Throws: `StoreError` with code `conflict` where another one has the same identifier, which befalls one in 65,536;
  ///   train it once more, to another size or on other samples.
  public mutating func add(_ dictionary: CompressionDictionary) throws(StoreError) {
    if let other = self[dictionary.id] {
      guard other == dictionary else {
        throw StoreError(
          .conflict, during: .addDictionary,
          message: "another dictionary is called \(dictionary.id) already; train this one to another size")
      }
      all.removeAll { $0 == dictionary }
    }
    all.append(dictionary)
  }
}

extension CompressionDictionaries: CustomStringConvertible {
  /// The identifiers, oldest first.
  public var description: String {
    "CompressionDictionaries(\(all.map(\.id.description).joined(separator: ", ")))"
  }
}
#endif
