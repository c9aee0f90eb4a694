import Larder

/// Where a page of a feed begins.
enum PageStart: Hashable, Sendable {
  /// At the newest transaction.
  case beginning
  /// Behind the last transaction of the page before.
  case after(PageCursor)
}
