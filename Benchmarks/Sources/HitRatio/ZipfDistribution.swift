import Foundation

/// Numbers with a Zipf distribution: the frequency of the n-th number is that of the first, divided by a power of n.
struct ZipfDistribution {
  private var cumulative: [Double] = []

  /// Creates a distribution.
  ///
  /// - Parameters:
  ///   - count: The number of numbers, from 0.
  ///   - exponent: The exponent of the power.
  init(count: Int, exponent: Double) {
    var sum = 0.0
    cumulative = (1...count).map { rank in
      sum += pow(Double(rank), -exponent)
      return sum
    }
  }

  /// Returns a random number.
  func next(using random: inout some RandomNumberGenerator) -> UInt64 {
    guard let total = cumulative.last else { return 0 }
    let point = Double.random(in: 0..<total, using: &random)
    var range = cumulative.indices
    while range.count > 1 {
      let middle = range.lowerBound + range.count / 2
      range = cumulative[middle - 1] > point ? range.lowerBound..<middle : middle..<range.upperBound
    }
    return UInt64(range.lowerBound)
  }
}
