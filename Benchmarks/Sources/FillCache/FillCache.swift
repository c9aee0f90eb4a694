import Foundation
import LarderCache
import PeakMemory

/// Fills a cache with numbers and prints the peak resident memory of the process, in bytes.
///
/// Each measurement is a process of its own, because a process does not return memory that it once had.
@main
enum FillCache {
  /// The kind of cache to fill.
  enum Way: String, CaseIterable {
    /// No cache, to measure the program itself.
    case nothing
    /// A `MemoryCache` with room for all numbers.
    case cache
    /// A `Dictionary` with room for all numbers.
    case dictionary
  }

  static func main() throws {
    let arguments = CommandLine.arguments
    guard arguments.count == 3, let way = Way(rawValue: arguments[1]), let count = Int(arguments[2]), count > 0 else {
      let ways = Way.allCases.map(\.rawValue).joined(separator: "|")
      FileHandle.standardError.write(Data("usage: FillCache \(ways) COUNT\n".utf8))
      exit(64)
    }
    switch way {
    case .nothing:
      break
    case .cache:
      let cache = MemoryCache<Int, Int>(entryLimit: count)
      for number in 0..<count { cache.setValue(number, forKey: number) }
      guard cache.count == count else { throw CocoaError(.featureUnsupported) }
    case .dictionary:
      var dictionary = [Int: Int](minimumCapacity: count)
      for number in 0..<count { dictionary[number] = number }
      guard dictionary.count == count else { throw CocoaError(.featureUnsupported) }
    }
    print(try PeakMemory.bytes())
  }
}
