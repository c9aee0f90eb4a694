import Foundation

/// Numbers of which the first is the most frequent, and the others the less the further they are behind: the frequency
/// of the n-th is to that of the first as 1 to a power of n.
struct ZipfDistribution {
  private var cumulative: [Double] = []

  /// Makes a distribution.
  ///
  /// - Parameters:
  ///   - count: How many numbers there are, from 0.
  ///   - exponent: The exponent of the power.
  init(count: Int, exponent: Double) {
    var sum = 0.0
    cumulative = (1...count).map { rank in
      sum += pow(Double(rank), -exponent)
      return sum
    }
  }

  /// A number by chance.
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
