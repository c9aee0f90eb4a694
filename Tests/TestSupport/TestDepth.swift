import LarderTesting

/// How much of their work the slowest tests do.
///
/// `make test` sets the environment variable `LARDER_ROUNDS` to 4, so they do a part, which depends on the seed and
/// thus differs from run to run. Without the variable, and in `make soak`, they do all of it.
package enum TestDepth {
  /// A Boolean value that indicates whether the slowest tests do only a part of their work.
  package static let isShort = ConformanceSuite.roundsOfProcess < 20

  /// The first number of a walk in steps of `distance`, which depends on the seed of the process.
  ///
  /// - Parameters:
  ///   - distance: The distance between two numbers, at least 1.
  ///   - walk: The name of the walk, so two walks of one process start at different numbers.
  /// - Returns: A number from 0 to `distance - 1`.
  package static func start(distance: Int, of walk: String) -> Int {
    var generator = SeededGenerator(seed: SeededGenerator.seedOfProcess, purpose: walk)
    return Int.random(in: 0..<distance, using: &generator)
  }

  /// Returns every element, or one of every few in a short run.
  ///
  /// - Parameters:
  ///   - elements: The elements.
  ///   - distance: The number of elements of which a short run keeps one.
  ///   - name: The name of the selection, so two selections of one process keep different elements.
  /// - Returns: The elements to test, in order.
  package static func part<Element>(of elements: [Element], oneIn distance: Int, for name: String) -> [Element] {
    guard isShort else { return elements }
    precondition(elements.count >= distance, "some seeds would test nothing")
    return stride(from: start(distance: distance, of: name), to: elements.count, by: distance).map { elements[$0] }
  }
}
