import Larder
import LarderTesting

/// A step of a history that is run on a queue and on the model of one.
enum QueueStep: Hashable {
  case enqueue(id: Int?, delay: Int)
  case set(Int)
  case remove(Int)
  case receive(max: Int, lease: Int)
  /// Of the receipts that were given out the one so many before the last.
  case acknowledge(Int)
  case release(Int, delay: Int)
  case extend(Int, lease: Int)
  case requeue(Int)
  case purge(Int)
  /// In seconds.
  case advance(Int)
  case reopen
  case void

  static func key(_ number: Int) -> StoreKey { StoreKey("id:\(number)") }

  /// The steps of the exhaustive histories: few keys, and times that meet each other.
  static let few: [QueueStep] = [
    .enqueue(id: nil, delay: 0), .enqueue(id: 1, delay: 5), .set(1), .remove(1), .receive(max: 1, lease: 10),
    .receive(max: 2, lease: 5), .acknowledge(0), .release(0, delay: 0), .release(1, delay: 5), .extend(0, lease: 20),
    .requeue(1), .advance(6),
  ]

  static func random(using generator: inout SeededGenerator) -> QueueStep {
    let id = Int.random(in: 0..<6, using: &generator)
    let back = Int.random(in: 0..<4, using: &generator)
    let time = Int.random(in: 1...12, using: &generator)
    return switch Int.random(in: 0..<32, using: &generator) {
    case 0..<7: .enqueue(id: Bool.random(using: &generator) ? id : nil, delay: 0)
    case 7..<9: .enqueue(id: id, delay: time)
    case 9..<11: .set(id)
    case 11: .remove(id)
    case 12..<18: .receive(max: Int.random(in: 1...4, using: &generator), lease: time)
    case 18..<23: .acknowledge(back)
    case 23..<25: .release(back, delay: Bool.random(using: &generator) ? 0 : time)
    case 25: .extend(back, lease: time)
    case 26: .requeue(id)
    case 27: .purge(id)
    case 28: .void
    case 29: .reopen
    default: .advance(time)
    }
  }
}
