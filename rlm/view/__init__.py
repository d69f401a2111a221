"""`rlm view`: a recorded run as one page, served while it goes on or written to a file.

Data flows one way: `feed` reads the lines of a trajectory as they are written, `rows` makes each small, `rests` finds
the cells that an answer rests on, `page` puts page and data together, `server` hands them out.
"""

from rlm.view.feed import Feed
from rlm.view.page import export
from rlm.view.server import ViewServer

__all__ = ["Feed", "ViewServer", "export"]
