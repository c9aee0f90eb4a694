/// The first few of any number of elements, in an order.
///
/// It never holds more than these.
struct Ranking<Element> {
  /// The first elements, in order.
  ///
  /// Equal elements are in the order of insertion.
  private(set) var elements: [Element] = []

  private let capacity: Int
  private let precedes: (Element, Element) -> Bool

  /// Creates an empty ranking.
  ///
  /// - Parameters:
  ///   - capacity: The number of elements to keep. It must not be negative.
  ///   - precedes: A Boolean value that indicates whether the first element comes before the second.
  init(capacity: Int, by precedes: @escaping (Element, Element) -> Bool) {
    self.capacity = capacity
    self.precedes = precedes
  }

  /// Inserts an element if it is among the first.
  mutating func insert(_ element: Element) {
    // Few elements are kept and most are refused here, so a search from the end is fast.
    let place = elements.lastIndex { !precedes(element, $0) }.map { $0 + 1 } ?? 0
    guard place < capacity else { return }
    if elements.count == capacity { elements.removeLast() }
    elements.insert(element, at: place)
  }
}
