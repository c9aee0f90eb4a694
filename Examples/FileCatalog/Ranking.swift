/// The first few of any number of elements, in an order; it never holds more than those.
struct Ranking<Element> {
  /// The elements that come first, in order; of equal ones those that were inserted first.
  private(set) var elements: [Element] = []

  private let capacity: Int
  private let precedes: (Element, Element) -> Bool

  /// Makes an empty ranking.
  ///
  /// - Parameters:
  ///   - capacity: How many elements to keep; not negative.
  ///   - precedes: Whether the first element comes before the second.
  init(capacity: Int, by precedes: @escaping (Element, Element) -> Bool) {
    self.capacity = capacity
    self.precedes = precedes
  }

  /// Takes an element in, where it is among the first.
  mutating func insert(_ element: Element) {
    // Few elements are kept and most are refused here, so a search from the end is quick.
    let place = elements.lastIndex { !precedes(element, $0) }.map { $0 + 1 } ?? 0
    guard place < capacity else { return }
    if elements.count == capacity { elements.removeLast() }
    elements.insert(element, at: place)
  }
}
